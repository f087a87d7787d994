"""Callers that wait for an intent to end, and observers of all changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from duetime.protocol.effect import Change
from duetime.protocol.intent import FINAL
from duetime.protocol.view import View

Observer = Callable[[Change], None]
_logger = logging.getLogger("duetime")


class Waiters:
    """Futures by intent, and observers of every change."""

    def __init__(self) -> None:
        self.observers: list[Observer] = []
        self._futures: dict[str, list[asyncio.Future[View]]] = {}

    def __bool__(self) -> bool:
        return bool(self._futures or self.observers)

    async def wait(self, id: str) -> View:
        future: asyncio.Future[View] = asyncio.get_running_loop().create_future()
        self._futures.setdefault(id, []).append(future)
        try:
            return await future
        finally:
            waiting = self._futures.get(id)
            if waiting is not None and future in waiting:
                waiting.remove(future)
                if not waiting:
                    del self._futures[id]

    def tell(self, changes: list[Change], view: Callable[[str], View]) -> None:
        """Tell waiters and observers about changes."""
        for change in changes:
            self.changed(change, view)
            for observer in list(self.observers):
                try:
                    observer(change)
                except (Exception, SystemExit, asyncio.CancelledError):
                    # An observer must not stop what it observes.
                    _logger.exception("An observer failed on %s.", change.id)

    def changed(self, change: Change, view: Callable[[str], View]) -> None:
        if change.new in FINAL:
            for future in self._futures.pop(change.id, ()):
                if not future.done():
                    future.set_result(view(change.id))

    def fail(self, error: Exception) -> None:
        """Fail all waiters: nothing more will be known."""
        waiting, self._futures = self._futures, {}
        for futures in waiting.values():
            for future in futures:
                if not future.done():
                    future.set_exception(error)
