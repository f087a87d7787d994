"""The laws that the simulator checks, written independently of the kernel."""
