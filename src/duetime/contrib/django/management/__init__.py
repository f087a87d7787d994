"""What `manage.py` learns from Duetime."""
