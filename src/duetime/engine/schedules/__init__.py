"""Recurring rules: the calendar, and the ticks that are due."""
