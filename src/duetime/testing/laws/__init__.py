"""The laws that the simulator checks, stated apart from the kernel."""
