"""One command of the log a file."""
