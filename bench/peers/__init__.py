"""Duetime beside other job systems: the same work, the same clock, one run."""
