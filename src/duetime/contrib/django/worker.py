"""The App of a project's tasks, for `duetime worker duetime.contrib.django.worker:app`.

DJANGO_SETTINGS_MODULE selects the project. The backend is the one with the alias `default`.
"""

from __future__ import annotations

import django

django.setup()

from duetime.contrib.django.backend import DuetimeBackend  # noqa: E402  # after django.setup()
from duetime.contrib.django.compat import task_backends  # noqa: E402
from duetime.errors import BadConfig  # noqa: E402

_backend = task_backends["default"]
if not isinstance(_backend, DuetimeBackend):
    raise BadConfig("TASKS['default'] in the settings is not the Duetime backend.")
app = _backend.make_app()
