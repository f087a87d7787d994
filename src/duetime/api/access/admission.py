"""Limits the connections of a listener, counted from `accept`, so that file descriptors remain for the
engine.

Every listener has its own limit, and one remote address gets at most a share of it. The limits follow from
the number of files that this process may open: some are reserved for the log, the store and outgoing calls. A
new connection beyond a limit is closed immediately; open connections stay.
"""

from __future__ import annotations

import ipaddress
import logging
import resource
from collections.abc import Callable, Iterable
from contextlib import suppress

from duetime.api.access.byte_budget import Budget
from duetime.clock import monotonic_ns
from duetime.limits import (
    CONNECTIONS_MAX,
    CONNECTIONS_PER_ADDRESS_SHARE,
    FILES_RESERVED,
    HELD_BYTES_MAX,
    HELD_REQUESTS_MIN,
    MS_NS,
    REFUSALS_LOGGED_MS,
    REFUSALS_SHOWN_MS,
    REQUEST_BYTES_MAX,
)

_logger = logging.getLogger("duetime")


def make_room(listeners: int = 1) -> int:
    """Raise the limit of open files as far as allowed. Returns the maximum connections of each listener."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # a sandbox may forbid it, and macOS does not accept "unlimited"
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    if soft == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return max(1, min(CONNECTIONS_MAX, (soft - min(FILES_RESERVED, soft // 2)) // listeners))


def held_budget(request_bytes_max: int = REQUEST_BYTES_MAX) -> Budget:
    """The budget for the bytes of all requests; each address or token gets half of it."""
    most = max(HELD_BYTES_MAX, HELD_REQUESTS_MIN * request_bytes_max)
    return Budget(most, most // 2)


class Admission:
    """The open connections of one listener, and the limits for new ones."""

    def __init__(
        self,
        name: str,
        most: int,
        per_address: int | None = None,
        held: Budget | None = None,
        now_ns: Callable[[], int] = monotonic_ns,
    ) -> None:
        """`most`: maximum concurrent connections; `per_address`: of them, from one remote address; `held`:
        the budget for bytes of unanswered requests, by address, which listeners may share."""
        self.name = name
        self.most = most
        self.per_address = (
            max(1, most // CONNECTIONS_PER_ADDRESS_SHARE) if per_address is None else per_address
        )
        self.held = held if held is not None else held_budget()
        self.open = 0
        self._of: dict[str, int] = {}
        self._now_ns = now_ns
        self._refused_ns: int | None = None
        self._logged_ns: int | None = None
        self._reason = ""

    def admit(self, address: str) -> Ticket | None:
        """Count a new connection from this address. None: close it immediately."""
        key = _network(address)
        of_address = self._of.get(key, 0)
        if self.open >= self.most:
            self.full()
            return None
        if of_address >= self.per_address:
            self._refuse(f"one address has {of_address} open connections, the maximum per address", key)
            return None
        self.open += 1
        self._of[key] = of_address + 1
        return Ticket(self, key)

    def full(self) -> None:
        """Record that the listener is full."""
        self._refuse(f"all {self.most} connections are in use")

    def out_of_files(self) -> None:
        """Record that the process has no file descriptor left."""
        self._refuse("the process has no file descriptor left")

    def trouble(self) -> str:
        """The reason why connections were refused in the last seconds; otherwise empty."""
        if self._refused_ns is None or self._now_ns() - self._refused_ns > REFUSALS_SHOWN_MS * MS_NS:
            return ""
        return f"{self.name} refuses new connections: {self._reason}"

    def _refuse(self, reason: str, key: str = "") -> None:
        self._reason = reason
        self._refused_ns = now_ns = self._now_ns()
        if self._logged_ns is None or now_ns - self._logged_ns > REFUSALS_LOGGED_MS * MS_NS:
            self._logged_ns = now_ns  # refused clients must not be able to fill the log
            _logger.warning("%s%s.", self.trouble(), f" ({key})" if key else "")

    def _release(self, key: str) -> None:
        self.open -= 1
        left = self._of[key] - 1
        if left:
            self._of[key] = left
        else:
            del self._of[key]


class Ticket:
    """One admitted connection. Released when its socket is closed."""

    __slots__ = ("_admission", "_key")

    def __init__(self, admission: Admission, key: str) -> None:
        self._admission: Admission | None = admission
        self._key = key

    def take(self, count: int) -> bool:
        """Count these bytes of a request until it is answered. False: the budget is used up."""
        return self._admission is not None and self._admission.held.take(self._key, count)

    def give(self, count: int) -> None:
        """Return bytes of an answered request. Call it before `release`."""
        assert self._admission is not None
        self._admission.held.give(self._key, count)

    def release(self) -> None:
        """The connection is closed. A second call does nothing."""
        admission, self._admission = self._admission, None
        if admission is not None:
            admission._release(self._key)


def troubles(admissions: Iterable[Admission]) -> dict[str, str]:
    """The current problems, by the name of the listener."""
    return {each.name: trouble for each in admissions if (trouble := each.trouble())}


def _network(address: str) -> str:
    """The unit that is counted: an IPv4 address, or the IPv6 network of one customer."""
    if ":" not in address:
        return address
    try:
        six = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if six.ipv4_mapped is not None:
        return str(six.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(six) >> 64 << 64, 64)))
