"""Integrations with frameworks. Each module imports its framework; the rest of Duetime imports none of
them."""
