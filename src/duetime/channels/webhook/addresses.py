"""Valid URLs of webhooks, and addresses that are refused.

Callers must not be able to read the keys of the machine from the cloud's metadata service through a webhook.
A name is checked after it was resolved, and the connection uses the checked addresses. So a name that
resolves to a harmless address first and to another one later (DNS rebinding) is refused too.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from concurrent.futures import ThreadPoolExecutor

from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from duetime.limits import NAME_LOOKUPS_MAX

# Metadata services of clouds that are not at a link-local address.
_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "fd00:ec2::254",  # AWS
        "fd00:ec2::23",  # AWS: credentials of ECS and EKS
        "fd20:ce::254",  # Google Cloud
        "168.63.129.16",  # Azure's wire server
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle
        "fd00:c1::a9fe:a9fe",  # Oracle
        "fd00:42::42",  # Scaleway
    )
)
# IPv6 addresses that carry an IPv4 address, and its offset from the right: mapped, translated, NAT64,
# compatible, 6to4. A network may use NAT64's local prefix with any length that RFC 6052 allows; then the
# octet in the middle is skipped.
_CARRIERS = (
    (ipaddress.IPv6Network("::ffff:0:0/96"), (0,)),
    (ipaddress.IPv6Network("::ffff:0:0:0/96"), (0,)),
    (ipaddress.IPv6Network("64:ff9b::/96"), (0,)),
    (ipaddress.IPv6Network("64:ff9b:1::/48"), (0, 24)),
    (ipaddress.IPv6Network("::/96"), (0,)),
    (ipaddress.IPv6Network("2002::/16"), (80,)),
)
_NAT64_LOCAL = ipaddress.IPv6Network("64:ff9b:1::/48")
# The interface identifiers of ISATAP, whose last half is an IPv4 address.
_ISATAP = frozenset((0x0000_5EFE, 0x0200_5EFE))

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressRefused(Exception):
    """A name resolved to an address that webhooks may not go to."""


def problem_with(url: str) -> str | None:
    """What is wrong with a callback's url; None: nothing that can be seen without resolving it."""
    if not url.isprintable() or " " in url:
        return "The url has a space or a control character in it."
    try:
        parsed = URL(url)
        port = parsed.port
    except (ValueError, TypeError) as error:
        return f"The url cannot be read: {error}."
    if parsed.scheme not in ("http", "https"):
        return f"The url must begin with http:// or https://: {url[:64]!r} does not."
    if not parsed.raw_host:
        return "The url has no host."
    if parsed.raw_user is not None or parsed.raw_password is not None:
        return "The url has credentials in it; put them in a header."
    if port == 0:
        return "The url's port is 0."
    return None


def refused(host: str) -> str | None:
    """Why this host may not be connected to, if it is an address; a name is checked once it is resolved."""
    address = _address(host)
    if address is None:
        return None
    for each in _meanings(address):
        if each.is_link_local:
            return f"{host} is a link-local address, which this server does not send to"
        if each in _METADATA:
            return f"{host} is the address of a metadata service, which this server does not send to"
    return None


class GuardedResolver(AbstractResolver):
    """Resolves names, and refuses forbidden addresses."""

    def __init__(self, guarded: bool) -> None:
        self._guarded = guarded
        self._threads = ThreadPoolExecutor(NAME_LOOKUPS_MAX, "duetime-names")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _look_up, host, port, family)
        if self._guarded:
            for each in found:
                problem = refused(each["host"])
                if problem is not None:
                    raise AddressRefused(f"{host} resolves to {problem}")
        return found

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int, family: socket.AddressFamily) -> list[ResolveResult]:
    try:
        answers = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)
    except UnicodeError as error:  # a label is empty or too long: no such name can exist
        raise socket.gaierror(socket.EAI_NONAME, f"not a host name: {error}") from None
    found = []
    for kind, _, protocol, _, place in answers:
        numeric = socket.getnameinfo(place, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0]
        flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        found.append(
            ResolveResult(
                hostname=host, host=numeric, port=port, family=int(kind), proto=protocol, flags=int(flags)
            )
        )
    return found


def _address(host: str) -> Address | None:
    host = host.rstrip(".")
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:  # 2852039166, 0xa9fea9fe, 169.254.43518: the operating system accepts all of these
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def _meanings(address: Address) -> list[Address]:
    """The address, and the IPv4 addresses it may carry."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    number = int(address)
    carried = [number >> bits for carrier, places in _CARRIERS if address in carrier for bits in places]
    if address in _NAT64_LOCAL:  # prefixes of 48 and 56 bits: around the octet that is skipped
        carried.append(number >> 48 & 0xFFFF0000 | number >> 40 & 0xFFFF)
        carried.append(number >> 40 & 0xFF000000 | number >> 32 & 0xFFFFFF)
    if number >> 32 & 0xFFFFFFFF in _ISATAP:
        carried.append(number)
    if address.teredo is not None:
        carried += map(int, address.teredo)
    return [address, *(ipaddress.IPv4Address(each & 0xFFFFFFFF) for each in carried)]
