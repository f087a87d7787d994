"""The words: what is written on the log or crosses the kernel's edge."""
