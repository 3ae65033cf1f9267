"""Diagnosis: findings computed from the trace of a run."""
