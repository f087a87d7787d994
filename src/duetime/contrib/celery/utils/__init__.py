"""Helpers that Celery projects import."""

from __future__ import annotations

from uuid import uuid4


def uuid() -> str:
    """A new id for a task."""
    return str(uuid4())
