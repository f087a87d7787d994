"""The embedded store in one SQLite file."""
