"""Ends open streams when their token is revoked or changed.

A request is checked when it arrives, but a stream may last for days. So every stream is registered here, and
a timer checks whether the tokens have changed. Without open streams there is no timer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence

from duetime.api.access.auth import Gate, Grant, caller
from duetime.errors import NoToken
from duetime.limits import REVOCATION_MS


class Revocations:
    """All open streams with the permissions of their callers."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._open: dict[object, tuple[Grant | None, Callable[[], None]]] = {}
        self._seen: Sequence[Grant] = ()
        self._timer: asyncio.TimerHandle | None = None

    @contextlib.contextmanager
    def watching(self, end: Callable[[], None]) -> Iterator[None]:
        """Register a stream of the current caller. `end` is called when its permissions change."""
        grant, key = caller.get(), object()
        if not self._gate.stands(grant):  # the token changed after it was checked
            raise revoked()
        self._open[key] = (grant, end)
        if self._timer is None:
            self._seen = self._gate.grants()
            self._arm()
        try:
            yield
        finally:
            del self._open[key]
            if not self._open and self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _arm(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(REVOCATION_MS / 1000, self._look)

    def _look(self) -> None:
        self._arm()
        grants = self._gate.grants()
        if grants is self._seen:  # a changed file gives a new object
            return
        self._seen = grants
        for grant, end in list(self._open.values()):
            if not self._gate.stands(grant):
                end()


def revoked() -> NoToken:
    return NoToken("The token was revoked or changed.")
