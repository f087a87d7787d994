"""Limits concurrent calls: in total, and for each token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from duetime.errors import Busy
from duetime.limits import REQUESTS_SHARE


class Places:
    """Counts running calls of one kind, in total and for each token."""

    def __init__(self, most: int, what: str, wait_ms: int = 100) -> None:
        """`what`: the kind of calls, for error messages. `wait_ms`: when a refused caller may retry."""
        self.most = most
        self.under_way = 0
        self._what = what
        self._wait_ms = wait_ms
        self._share = max(1, most * REQUESTS_SHARE[0] // REQUESTS_SHARE[1])
        self._of: dict[str, int] = {}

    def has_room(self, token: str) -> bool:
        """Whether one more call may start. Without tokens, all callers count as one and share the total."""
        return self.under_way < self.most and self._of.get(token, 0) < self._share

    def check(self, token: str) -> None:
        """Raise unless one more call may start."""
        if self.has_room(token):
            return
        if self.under_way >= self.most:
            text = f"{self.most} {self._what} are running, which is the maximum."
        else:
            text = (
                f"{self._share} {self._what} of this token are running, which is the maximum for one token."
            )
        raise Busy(text, waitMs=self._wait_ms)

    def begin(self, token: str) -> None:
        """Count one more call, after `check` or `has_room`."""
        self.under_way += 1
        if token:
            self._of[token] = self._of.get(token, 0) + 1

    def end(self, token: str) -> None:
        self.under_way -= 1
        if token:
            left = self._of[token] - 1
            if left:
                self._of[token] = left
            else:
                del self._of[token]

    @contextmanager
    def one(self, token: str) -> Iterator[None]:
        """Check, and count one more call inside."""
        self.check(token)
        self.begin(token)
        try:
            yield
        finally:
            self.end(token)
