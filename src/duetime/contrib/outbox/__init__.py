"""The outbox: rows in the application's database, and the sink to which they are relayed."""
