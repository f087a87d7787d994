"""A Django project with a job to do."""
