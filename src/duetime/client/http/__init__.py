"""`Client`, the typed HTTP client."""
