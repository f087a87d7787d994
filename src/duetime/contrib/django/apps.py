"""The Django application."""

from __future__ import annotations

from django.apps import AppConfig


class DuetimeConfig(AppConfig):
    """Has the model of the outbox."""

    name = "duetime.contrib.django"
    label = "duetime"
    verbose_name = "Duetime"
    default_auto_field = "django.db.models.BigAutoField"
