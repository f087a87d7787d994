"""Refuses requests from pages of other sites, by headers that browsers set and pages cannot change.

A browser sends requests of any page to any address, including this server, from inside the user's network.
Such a request is refused, with or without a token. Programs send none of these headers except `Host`. It must
contain a name of this server, so that a page cannot reach it under another name (DNS rebinding). An IP
address in `Host` is always accepted.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Sequence
from typing import Final

from duetime.errors import BadConfig, BadHttp, DuetimeError, ForeignHost, ForeignPage
from duetime.limits import HOST_HEADERS_KEPT

Headers = Sequence[tuple[bytes, bytes]]

# Values of Sec-Fetch-Site for a page of this server, and for an address that the user typed.
_OWN_SITE: Final = frozenset({b"same-origin", b"none"})
_JUDGED: Final = frozenset({b"host", b"origin", b"sec-fetch-site"})
_HOST_NAME: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")


def names_in(hosts: str) -> list[str]:
    """The names in the setting server.hosts. A value that can never match a `Host` header, such as `*` or
    `http://duetime:7928`, is refused: otherwise every request would be refused without an explanation."""
    names = [name for each in hosts.split(",") if (name := _plain(each))]
    for name in names:
        if not (_HOST_NAME.fullmatch(name) or _is_address(name)):
            raise BadConfig(
                f"server.hosts: {name!r} is not a host name.",
                hint="List names such as duetime or jobs.example.com, without scheme, port and wildcards.",
            )
    return names


class Browsers:
    """Knows the names of this server."""

    def __init__(self, names: Iterable[str] = (), *, tls: bool = False) -> None:
        """`names`: names besides localhost and the machine's name and addresses. `tls`: the server uses
        TLS."""
        self._given = frozenset(name for each in names if (name := _plain(each)))
        self._names = self._given | {"localhost", _plain(socket.gethostname())}
        self._tls = tls
        self.known: set[bytes] = set()
        """Accepted values of `Host`."""

    def judge(self, headers: Headers, version: str = "1.1") -> DuetimeError | None:
        """The error for a request with these headers; None if it is accepted."""
        hosts = origins = 0
        host = origin = b""
        for name, value in headers:
            if name not in _JUDGED:
                continue
            if name == b"host":
                hosts, host = hosts + 1, value
            elif name == b"origin":
                origins, origin = origins + 1, value
            elif value not in _OWN_SITE:
                return ForeignPage("The request comes from a web page of another site.")
        if hosts > 1 or (not hosts and version != "1.0"):
            return BadHttp(f"The request has {hosts} Host headers; exactly one is required.")
        if hosts and host not in self.known:
            if not self._is_ours(host):
                shown = host[:100].decode("latin-1")
                return ForeignHost(f"The request is for {shown!r}, which is not a name of this server.")
            if len(self.known) < HOST_HEADERS_KEPT:
                self.known.add(host)
        if origins and (origins > 1 or not self._same_origin(origin, host)):
            return ForeignPage("The request comes from a page of another origin.")
        return None

    def _is_ours(self, host: bytes) -> bool:
        name = _name_in(host)
        return name in self._names or _is_address(name)

    def _same_origin(self, origin: bytes, host: bytes) -> bool:
        """Whether the page belongs to this server: its origin is the address of the request. For a proxy that
        changes Host, the configured names decide."""
        scheme, separator, place = origin.lower().partition(b"://")
        if not separator or scheme not in ((b"https",) if self._tls else (b"http", b"https")):
            return False
        return place == host.lower() or _name_in(place) in self._given


def _name_in(place: bytes) -> str:
    """The name in `name:port`; empty if the value has another form."""
    name, colon, port = place.rpartition(b":")
    if not colon or place.endswith(b"]"):
        name = place
    elif not port.isdigit():
        return ""
    return _plain(name.decode("latin-1"))


def _plain(name: str) -> str:
    return name.strip().lower().removesuffix(".")


def _is_address(name: str) -> bool:
    bracketed = name.startswith("[") and name.endswith("]")
    try:
        return ipaddress.ip_address(name[1:-1] if bracketed else name).version == (6 if bracketed else 4)
    except ValueError:
        return False
