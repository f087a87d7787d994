"""The typed HTTP client, and the models of a server's answers."""
