"""Benchmarks: numbers with their targets, as ratios in one run where that is possible."""
