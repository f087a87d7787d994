"""What users' programs hold."""
