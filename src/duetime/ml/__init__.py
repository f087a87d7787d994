"""Predicted durations from the payload and the hour: a process of its own, there with the extra `ml`."""
