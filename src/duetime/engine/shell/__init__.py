"""Append, apply, act: the inbox, the pump, and the order in which the engine works."""
