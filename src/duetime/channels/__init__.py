"""Channels carry deliveries out and return exactly one outcome for each."""
