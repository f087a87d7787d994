"""Its settings. The tests say where things are: PROJECT_SQLITE, PROJECT_POSTGRES (HOST/NAME), PROJECT_URL."""

from __future__ import annotations

import os
from typing import Any

SECRET_KEY = "of a test"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "duetime.contrib.django"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

DATABASES: dict[str, dict[str, Any]] = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["PROJECT_SQLITE"]}
}
if os.environ.get("PROJECT_POSTGRES"):
    host, _, name = os.environ["PROJECT_POSTGRES"].rpartition("/")
    DATABASES["postgres"] = {
        "ENGINE": "django.db.backends.postgresql", "NAME": name, "HOST": host, "USER": "postgres"
    }  # fmt: skip


def tasks(database: str) -> dict[str, Any]:
    return {
        "BACKEND": "duetime.contrib.django.backend.DuetimeBackend",
        "QUEUES": ["default", "mail", os.environ.get("PROJECT_QUEUE", "other")],
        "OPTIONS": {
            "url": os.environ["PROJECT_URL"],
            "database": database,
            "intent": {"timeout": "20s"},
            "modules": ["tests.contrib.project.jobs"],
        },
    }


TASKS = {name: tasks(name) for name in DATABASES}
TASKS["direct"] = tasks("default")
TASKS["direct"]["OPTIONS"]["outbox"] = False
TASKS["any-queue"] = {**tasks("default"), "QUEUES": []}
