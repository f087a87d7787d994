"""Intents in the project's database: written in a transaction, relayed after its commit.

with transaction.atomic():
    order.save()
    outbox.schedule(send_receipt, order.number)  # both, or neither
"""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from typing import Any, ParamSpec, TypeVar, Unpack

from django.db import close_old_connections, connections, router, transaction

from duetime.client.app.app import App
from duetime.client.app.task import Planned
from duetime.client.http.request_types import NewIntent
from duetime.clock import SystemClock
from duetime.contrib.django.models import OutboxRow
from duetime.contrib.outbox import rows as outbox_rows
from duetime.contrib.outbox.rows import Count, NewRow, Row, Settled
from duetime.contrib.relay import Relay
from duetime.contrib.threads import InThread
from duetime.limits import RELAY_BATCH, RELAY_POLL_S

P = ParamSpec("P")
R = TypeVar("R")

_relays: weakref.WeakSet[Relay] = weakref.WeakSet()


def schedule(task: Planned[P, R], /, *args: P.args, **kwargs: P.kwargs) -> str:
    """Schedule a call of an App's function when the transaction commits. Returns the id of the intent.

    If the task's options contain a `key`, returns the key: it may name an earlier intent.
    """
    return keep(outbox_rows.of_task(task, args, kwargs, SystemClock().now_ms()))


def add(**intent: Unpack[NewIntent]) -> str:
    """Schedule any intent, with the arguments of `Client.create`, such as a webhook or a stream."""
    return keep(outbox_rows.of_fields(intent, SystemClock().now_ms()))


def keep(row: NewRow, using: str | None = None) -> str:
    """Write a row, in the open transaction of this database if there is one."""
    database = using or router.db_for_write(OutboxRow)
    OutboxRow.objects.using(database).create(key=row.key, body=row.body, created_ms=row.created_ms)
    transaction.on_commit(nudge, using=database, robust=True)
    return row.name


def relay(
    app: App, *, using: str | None = None, batch: int = RELAY_BATCH, poll_s: float = RELAY_POLL_S
) -> Relay:
    """A relay that sends committed rows to Duetime. Commits in this process notify it."""
    rows = InThread(DjangoRows(using or router.db_for_write(OutboxRow)))
    made = Relay(app, rows, batch=batch, poll_s=poll_s)
    _relays.add(made)
    return made


def nudge() -> None:
    """Notify the relays of this process: there may be a new row."""
    for each in tuple(_relays):
        each.nudge()


class DjangoRows:
    """The table in one of the project's databases. All calls come from one thread."""

    def __init__(self, using: str) -> None:
        self._using = using
        self._open: ExitStack | None = None

    @property
    def _all(self) -> Any:
        return OutboxRow.objects.using(self._using)

    def take(self, count: int, now_ms: int) -> list[Row]:
        self.let_go()
        close_old_connections()
        wanted = self._all.filter(error=None, retry_ms__lte=now_ms).order_by("id")
        if connections[self._using].features.has_select_for_update_skip_locked:
            self._open = ExitStack()
            self._open.enter_context(transaction.atomic(self._using))
            wanted = wanted.select_for_update(skip_locked=True)
        return [Row(id, body) for id, body in wanted.values_list("id", "body")[:count]]

    def settle(self, settled: Settled) -> None:
        with transaction.atomic(self._using):
            self._all.filter(id__in=settled.done).delete()
            for id, reason in settled.refused:
                self._all.filter(id=id).update(error=reason)
            for id, retry_ms in settled.later:
                self._all.filter(id=id).update(retry_ms=retry_ms)
        if self._open is not None:
            opened, self._open = self._open, None
            opened.close()

    def let_go(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            undo = _LetGo()
            opened.__exit__(_LetGo, undo, None)  # rolls back

    def count(self) -> Count:
        refused = self._all.exclude(error=None).count()
        return Count(self._all.filter(error=None).count(), refused)

    def reopen(self) -> int:
        changed: int = self._all.exclude(error=None).update(error=None)
        return changed

    def close(self) -> None:
        self.let_go()
        connections[self._using].close()


class _LetGo(Exception):
    """Raised to roll back a transaction."""
