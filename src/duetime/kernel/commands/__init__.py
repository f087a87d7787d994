"""One file for each command on the log."""
