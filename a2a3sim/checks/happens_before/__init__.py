"""What could happen on another schedule: checks that follow from guaranteed happens-before."""
