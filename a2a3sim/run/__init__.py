"""One run of a program: settings, launch, calls and workers."""
