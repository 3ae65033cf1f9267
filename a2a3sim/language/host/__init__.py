"""What a host body says: programs, their recording, and what is inferred from it."""
