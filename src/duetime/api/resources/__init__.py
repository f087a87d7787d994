"""The routes of the HTTP API, one noun a file."""
