"""Ready intents: lanes, tiers, limiters, fairness, entity types, and dispatch."""
