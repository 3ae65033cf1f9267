"""The hardware: core, memory, signal memory, interconnect, and the platform files."""

if __name__ != "a2a3sim.models":
    raise ImportError("import a2a3sim.models, not models: a second copy of its modules would be created")
