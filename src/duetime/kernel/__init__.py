"""What happens: a deterministic function of the log's records."""
