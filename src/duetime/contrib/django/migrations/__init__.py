"""How the outbox's table came about."""
