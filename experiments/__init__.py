"""What users run: comparisons, sweeps, plots, validation."""

if __name__ != "a2a3sim.experiments":
    raise ImportError(
        "import a2a3sim.experiments, not experiments: a second copy of its modules would be created"
    )
