"""Integrations with frameworks. Each module imports its framework; nothing else of Duetime does."""
