"""Migrations of the outbox's table."""
