"""A breaker: after many failures in a row, a host is left alone for a while, then asked once.

What waits for a dead host would otherwise hold permits that others need, each until its time limit.
"""

from __future__ import annotations

# A host that fails again and again is left alone for longer each time, up to so many times the first.
_LONGER_MAX = 12
# How long others wait while one call finds out.
_PROBE_S = 1.0


class Breaker:
    """Counts one host's failures in a row. Times are of a clock that never goes back."""

    __slots__ = ("_failures", "_failures_max", "_first_s", "_open_s", "_probing", "_until_s")

    def __init__(self, failures_max: int, open_s: float) -> None:
        self._failures_max = failures_max
        self._first_s = open_s
        self._failures = 0
        self._open_s = open_s
        self._until_s = 0.0
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Whether calls are held back. One that is let through all the same is the probe."""
        return self._failures >= self._failures_max

    def admits(self, now_s: float) -> bool:
        """Whether a call may go. While open, one may once the time is over: the probe. Say how it ended."""
        if self._failures < self._failures_max:
            return True
        if self._probing or now_s < self._until_s:
            return False
        self._probing = True
        return True

    def wait_s(self, now_s: float) -> float:
        """How long a call that may not go should wait."""
        return max(self._until_s - now_s, _PROBE_S)

    def succeeded(self) -> None:
        """The host answered."""
        self._failures = 0
        self._open_s = self._first_s
        self._probing = False

    def failed(self, now_s: float, probe: bool) -> None:
        """The host did not answer, or not sensibly."""
        self._failures += 1
        if probe:  # it is still down: longer this time
            self._probing = False
            self._open_s = min(self._open_s * 2, self._first_s * _LONGER_MAX)
            self._until_s = now_s + self._open_s
        elif self._failures == self._failures_max:
            self._until_s = now_s + self._open_s

    def abandoned(self, probe: bool) -> None:
        """A call ended without telling anything about the host."""
        if probe:
            self._probing = False
