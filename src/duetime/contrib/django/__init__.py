"""Duetime in a Django project: a backend for Django's tasks, and an outbox in the project's database.

    INSTALLED_APPS = [..., "duetime.contrib.django"]
    TASKS = {"default": {"BACKEND": "duetime.contrib.django.backend.DuetimeBackend",
                         "OPTIONS": {"url": "http://localhost:7928"}}}

`manage.py duetime_relay` sends committed rows to Duetime; `duetime worker duetime.contrib.django.worker:app`
runs the tasks.
"""
