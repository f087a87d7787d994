"""The entry for new intents and commands: known terms, limits, chunks."""
