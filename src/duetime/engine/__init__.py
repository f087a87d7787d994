"""The shell around the kernel: append, apply, act."""
