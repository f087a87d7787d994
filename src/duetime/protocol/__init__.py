"""The data types written on the log or passed across the kernel's edge."""
