"""Between the JSON of the API and the values of the engine."""
