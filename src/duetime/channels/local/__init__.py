"""Functions in this process: coroutines, threads, processes."""
