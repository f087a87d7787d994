"""Celery's loggers of tasks."""

from __future__ import annotations

import logging


def get_task_logger(name: str) -> logging.Logger:
    """The logger of a module. A worker stores its lines with the intents of the tasks."""
    return logging.getLogger(name)


def get_logger(name: str) -> logging.Logger:
    return logging.getLogger(name)
