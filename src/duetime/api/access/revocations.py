"""Streams that stay open, and end when the token they came with is revoked or changed.

A request is checked when it comes; a stream may last for days. So whoever serves a stream registers it here,
and one timer looks whether the tokens changed. As long as no stream is open, there is no timer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence

from duetime.api.access.auth import Gate, Grant, caller
from duetime.errors import NoToken
from duetime.limits import REVOCATION_MS


class Revocations:
    """All open streams with what was granted to their callers."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._open: dict[object, tuple[Grant | None, Callable[[], None]]] = {}
        self._seen: Sequence[Grant] = ()
        self._timer: asyncio.TimerHandle | None = None

    @contextlib.contextmanager
    def watching(self, end: Callable[[], None]) -> Iterator[None]:
        """A stream of whoever asks just now; `end` is called when they may not have it any more."""
        grant, key = caller.get(), object()
        if not self._gate.stands(grant):  # since it was checked
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
        if grants is self._seen:  # it is another object when the file has changed
            return
        self._seen = grants
        for grant, end in list(self._open.values()):
            if not self._gate.stands(grant):
                end()


def revoked() -> NoToken:
    return NoToken("The token was revoked or changed.")
