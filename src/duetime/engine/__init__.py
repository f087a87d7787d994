"""The asyncio shell around the kernel: append, apply, act."""
