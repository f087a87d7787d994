"""The functions that workers announce, and the checks of payloads by their schemas."""
