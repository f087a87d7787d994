"""A circuit breaker: after many consecutive failures, calls are held back for a while; then one call probes.

Calls that wait for a dead host would otherwise hold permits that others need, each until its time limit.
Probes are spread: the next one goes when the last has failed, or after a second if it has another key. Where
other keys are held back too, a key whose probe failed lets them go first: one failing path cannot keep a host
shut.
"""

from __future__ import annotations

from duetime.limits import BREAKER_FACTOR_MAX, BREAKER_PROBE_S


class Breaker:
    """Counts consecutive failures. Times are those of a monotonic clock."""

    __slots__ = (
        "_failures", "_failures_max", "_first_s", "_key", "_next_s", "_open_s", "_others", "_probes",
        "_until_s",
    )  # fmt: skip

    def __init__(self, failures_max: int, open_s: float) -> None:
        self._failures_max = failures_max
        self._first_s = open_s
        self._failures = 0
        self._open_s = open_s
        self._until_s = 0.0
        self._probes = 0
        """The number of probes in flight."""
        self._next_s = 0.0
        """When a probe of another key may follow one that has no answer yet."""
        self._key = ""
        """The key of the newest probe."""
        self._others = False
        """Whether a call of another key was held back since."""

    @property
    def is_open(self) -> bool:
        """Whether calls are held back. A call that is let through while open is a probe."""
        return self._failures >= self._failures_max

    def refuses(self, now_s: float) -> bool:
        """Whether no call at all may go now. A call that is not refused must still be admitted."""
        return self._failures >= self._failures_max and now_s < self._until_s

    def admits(self, now_s: float, key: str = "") -> bool:
        """Whether a call may go. While open, one may once the wait is over: the probe. Report its end."""
        if self._failures < self._failures_max:
            return True
        if not self._probe_may_go(now_s, key):
            self._others = self._others or key != self._key
            return False
        self._probes += 1
        self._key, self._others = key, False
        self._next_s = now_s + BREAKER_PROBE_S
        return True

    def _probe_may_go(self, now_s: float, key: str) -> bool:
        if now_s < self._until_s:
            return False
        if self._probes:
            return key != self._key and now_s >= self._next_s
        return key != self._key or not self._others or now_s >= self._until_s + BREAKER_PROBE_S

    def wait_s(self, now_s: float) -> float:
        """How long a call that may not go should wait."""
        return max(self._until_s - now_s, BREAKER_PROBE_S)

    def succeeded(self) -> None:
        """There was an answer."""
        self._failures = self._probes = 0
        self._open_s = self._first_s
        self._others = False

    def failed(self, now_s: float, probe: bool) -> None:
        """There was no answer, or a bad one."""
        self._failures += 1
        if probe and self._probes:  # it is still down: wait longer this time
            self._probes -= 1
            if now_s >= self._until_s:  # unless another probe has just reported it
                self._open_s = min(self._open_s * 2, self._first_s * BREAKER_FACTOR_MAX)
                self._until_s = now_s + self._open_s
        elif self._failures == self._failures_max:
            self._until_s = now_s + self._open_s

    def abandoned(self, probe: bool) -> None:
        """A call ended without a result."""
        if probe and self._probes:
            self._probes -= 1
