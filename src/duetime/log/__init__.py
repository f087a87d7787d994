"""Bytes in order."""
