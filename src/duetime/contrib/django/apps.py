"""The application, as Django knows it."""

from __future__ import annotations

from django.apps import AppConfig


class DuetimeConfig(AppConfig):
    """Brings the table of the outbox."""

    name = "duetime.contrib.django"
    label = "duetime"
    verbose_name = "Duetime"
    default_auto_field = "django.db.models.BigAutoField"
