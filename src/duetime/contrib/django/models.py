"""The model of the outbox."""

from __future__ import annotations

from typing import Any

from django.db import models

from duetime.contrib.outbox import rows
from duetime.limits import KEY_CHARS_MAX


class OutboxRow(models.Model):
    """An intent that waits to be relayed, or was refused: then `error` has the reason."""

    id = models.BigAutoField(primary_key=True)
    key = models.CharField(max_length=KEY_CHARS_MAX)
    body = models.TextField()
    created_ms = models.BigIntegerField()
    retry_ms = models.BigIntegerField(default=0, db_default=0)
    error = models.TextField(null=True)

    objects: Any = models.Manager()

    class Meta:
        """The same table as in the outbox for SQLAlchemy."""

        db_table = rows.TABLE
        verbose_name = "outbox row"

    def __str__(self) -> str:
        return f"{self.id}: {self.key}"
