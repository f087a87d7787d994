"""The engine's rules: a deterministic function of the log's records."""
