"""Which connections a listener accepts, counted from `accept`, so that strangers leave the engine its files.

Every listener has a limit of its own, and one remote address gets at most a share of it. The limits follow
from the files that this process may open: some are kept for the log, the store and the calls out. A newcomer
beyond a limit is closed at once; connections that are open stay.
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
    REFUSALS_LOGGED_MS,
    REFUSALS_SHOWN_MS,
    REQUEST_BYTES_MAX,
)

_logger = logging.getLogger("duetime")
_MS_NS = 1_000_000


def make_room(listeners: int = 1) -> int:
    """Raise the limit of open files as far as allowed; how many connections each listener may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # a sandbox may forbid it, and macOS takes no "unlimited"
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    if soft == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return max(1, min(CONNECTIONS_MAX, (soft - min(FILES_RESERVED, soft // 2)) // listeners))


def held_budget(request_bytes_max: int = REQUEST_BYTES_MAX) -> Budget:
    """The bytes that all requests together may hold, and half of them for each address or token."""
    most = max(HELD_BYTES_MAX, HELD_REQUESTS_MIN * request_bytes_max)
    return Budget(most, most // 2)


class Admission:
    """The open connections of one listener, and the limits that a newcomer must pass."""

    def __init__(
        self,
        name: str,
        most: int,
        per_address: int | None = None,
        held: Budget | None = None,
        now_ns: Callable[[], int] = monotonic_ns,
    ) -> None:
        """`most`: connections at one time; `per_address`: of them, from one remote address; `held`: bytes of
        requests that are not answered, by address; listeners may share it."""
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
        """Count a new connection from this address; None: refuse it, and close it at once."""
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
        """No more connections fit in."""
        self._refuse(f"all {self.most} connections are in use")

    def out_of_files(self) -> None:
        """The operating system has no file left for a newcomer."""
        self._refuse("the process has no file descriptor left")

    def trouble(self) -> str:
        """Why newcomers are refused, if any was in the last seconds; else empty."""
        if self._refused_ns is None or self._now_ns() - self._refused_ns > REFUSALS_SHOWN_MS * _MS_NS:
            return ""
        return f"{self.name} refuses new connections: {self._reason}"

    def _refuse(self, reason: str, key: str = "") -> None:
        self._reason = reason
        self._refused_ns = now_ns = self._now_ns()
        if self._logged_ns is None or now_ns - self._logged_ns > REFUSALS_LOGGED_MS * _MS_NS:
            self._logged_ns = now_ns  # strangers must not be able to fill the log
            _logger.warning("%s%s.", self.trouble(), f" ({key})" if key else "")

    def _release(self, key: str) -> None:
        self.open -= 1
        left = self._of[key] - 1
        if left:
            self._of[key] = left
        else:
            del self._of[key]


class Ticket:
    """One admitted connection. Given back when its socket is closed."""

    __slots__ = ("_admission", "_key")

    def __init__(self, admission: Admission, key: str) -> None:
        self._admission: Admission | None = admission
        self._key = key

    def take(self, count: int) -> bool:
        """Hold these bytes of a request until it is answered; False: too many are held."""
        return self._admission is not None and self._admission.held.take(self._key, count)

    def give(self, count: int) -> None:
        """The request is answered. Before the release."""
        assert self._admission is not None
        self._admission.held.give(self._key, count)

    def release(self) -> None:
        """The connection is gone; a second call does nothing."""
        admission, self._admission = self._admission, None
        if admission is not None:
            admission._release(self._key)


def troubles(admissions: Iterable[Admission]) -> dict[str, str]:
    """What is wrong now, by the listener's name."""
    return {each.name: trouble for each in admissions if (trouble := each.trouble())}


def _network(address: str) -> str:
    """Who is counted as one: an IPv4 address, or the IPv6 network that one customer gets."""
    if ":" not in address:
        return address
    try:
        six = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if six.ipv4_mapped is not None:
        return str(six.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(six) >> 64 << 64, 64)))
