"""Behind `a2a3sim.language`: what its symbols do, and how programs are recorded."""
