"""The one room that reads a run."""
