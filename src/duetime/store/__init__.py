"""Where state lives between records."""
