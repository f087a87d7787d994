"""The outbox: rows in the application's database, and where they are relayed to."""
