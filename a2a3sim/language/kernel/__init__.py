"""What a kernel does: operations on tiles, windows and signals, down to demands on the hardware."""
