"""The routes of the HTTP API, one noun per file."""
