"""Bytes in order: the log engines and the protocol they share."""
