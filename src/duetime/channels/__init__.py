"""Out to the world and back with exactly one outcome."""
