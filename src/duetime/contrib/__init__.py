"""Bridges to frameworks. Each module needs its framework only; nothing of Duetime needs them."""
