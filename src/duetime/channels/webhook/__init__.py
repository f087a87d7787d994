"""Webhooks: the channel that calls HTTP endpoints."""
