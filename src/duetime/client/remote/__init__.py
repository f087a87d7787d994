"""The backend of an App on a server."""
