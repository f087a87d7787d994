"""Decides which calls may start: a circuit breaker for each host, and one for each failing endpoint.

A host's breaker opens when the host cannot be reached; an answer of any kind shows that it is up. An endpoint
(a url without its query) that answers with errors, or not in time, is slowed down alone. Only endpoints whose
newest call failed are remembered, so that healthy ones cost a look-up in an empty table.
"""

from __future__ import annotations

from typing import NamedTuple

from duetime.channels.webhook.answers import WebhookResponse
from duetime.channels.webhook.breaker import Breaker
from duetime.limits import ENDPOINTS_MAX
from duetime.protocol.outcome import Failed, Rejected

# Failures to reach a host.
_UNREACHED = frozenset(("timeout", "connect", "dns", "tls", "protocol"))


class Shut(NamedTuple):
    """How long a call that may not go now should wait, and why."""

    wait_s: float
    text: str


class Probes(NamedTuple):
    """Whether a call is a probe of its host, and of its endpoint."""

    host: bool
    endpoint: bool


_NO_PROBES = Probes(False, False)


class Gates:
    """Called before and after each call. Times are those of the event loop's clock."""

    def __init__(self, failures_max: int, open_s: float) -> None:
        self._failures_max = failures_max
        self._open_s = open_s
        self._endpoints: dict[str, Breaker] = {}
        """The endpoints that fail, in the order of their newest failure."""

    def breaker(self) -> Breaker:
        """The breaker of a new host."""
        return Breaker(self._failures_max, self._open_s)

    def slowed(self) -> list[str]:
        """The endpoints whose calls are held back."""
        return [endpoint for endpoint, breaker in self._endpoints.items() if breaker.is_open]

    def __len__(self) -> int:
        """The number of endpoints remembered."""
        return len(self._endpoints)

    def shut(self, host: Breaker, origin: str, endpoint: str, now_s: float) -> Shut | None:
        """The reason why no call may start now. None: call `admit` when the call can be made."""
        slow = self._endpoints.get(endpoint)
        if host.refuses(now_s):
            return self._host_shut(host, origin, now_s)
        if slow is not None and slow.refuses(now_s):
            return self._endpoint_shut(slow, endpoint, now_s)
        return None

    def admit(self, host: Breaker, origin: str, endpoint: str, now_s: float) -> Shut | Probes:
        """The reason why this call must wait; or, if it may start, what it probes."""
        slow = self._endpoints.get(endpoint)
        if slow is not None and not slow.admits(now_s):
            return self._endpoint_shut(slow, endpoint, now_s)
        if slow is None and not host.is_open:
            return _NO_PROBES
        probes = Probes(host.is_open, slow is not None and slow.is_open)
        if not host.admits(now_s, endpoint):
            self.abandoned(host, endpoint, Probes(False, probes.endpoint))
            return self._host_shut(host, origin, now_s)
        return probes

    def ended(
        self,
        host: Breaker,
        endpoint: str,
        answer: WebhookResponse | Failed | Rejected,
        probes: Probes,
        now_s: float,
    ) -> None:
        """Update the breakers of a call's host and endpoint by how it ended."""
        if isinstance(answer, WebhookResponse):
            host.succeeded()
            if answer.status >= 500:
                self._failed(endpoint, now_s, probes.endpoint)
            elif self._endpoints:
                self._endpoints.pop(endpoint, None)
            return
        if isinstance(answer, Failed) and answer.kind in _UNREACHED:
            host.failed(now_s, probes.host)
            if answer.kind == "timeout":
                self._failed(endpoint, now_s, probes.endpoint)
                return
        self.abandoned(host, endpoint, probes)

    def abandoned(self, host: Breaker, endpoint: str, probes: Probes) -> None:
        """A call ended without a result."""
        host.abandoned(probes.host)
        slow = self._endpoints.get(endpoint)
        if slow is not None:
            slow.abandoned(probes.endpoint)

    def _failed(self, endpoint: str, now_s: float, probe: bool) -> None:
        slow = self._endpoints.pop(endpoint, None)
        if slow is None:
            slow = self.breaker()
            if len(self._endpoints) >= ENDPOINTS_MAX:
                del self._endpoints[next(iter(self._endpoints))]
        self._endpoints[endpoint] = slow
        slow.failed(now_s, probe)

    def _host_shut(self, breaker: Breaker, origin: str, now_s: float) -> Shut:
        text = f"{origin} could not be reached {self._failures_max} times in a row; it was not called"
        return Shut(breaker.wait_s(now_s), text)

    def _endpoint_shut(self, breaker: Breaker, endpoint: str, now_s: float) -> Shut:
        text = f"{endpoint} failed {self._failures_max} times in a row; it was not called"
        return Shut(breaker.wait_s(now_s), text)
