"""Public tools for tests: contracts, virtual time, the simulator, the pytest plugin."""
