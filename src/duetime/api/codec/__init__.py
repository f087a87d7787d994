"""Converts between the JSON of the API and the types of the engine."""
