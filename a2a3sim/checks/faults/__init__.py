"""What went wrong, or wastefully, in this run: deadlocks, failures, unwritten bytes, performance."""
