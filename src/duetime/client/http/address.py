"""The server and the token of a client: as given, or from the environment."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from duetime import config
from duetime.errors import BadConfig
from duetime.limits import HTTP_PORT

_HINT = "Write it as http://localhost:7928, or set DUETIME_URL."
# A name or an address with a port, without a scheme, such as localhost:7928.
_HOST_AND_PORT = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>\d{1,5})")


def url_of(url: str | None) -> str:
    """The address of a server, validated, without a trailing slash."""
    given = url if url is not None else config.client_url()
    try:
        parts = urlsplit(given)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise BadConfig(f"{given!r} is not the address of a server: {error}.", hint=_HINT) from error
    if parts.scheme not in ("http", "https") or not host:
        meant = meant_url(given)
        hint = _HINT if meant is None else f"Write {meant}."
        raise BadConfig(f"{given!r} is not the address of a server.", hint=hint)
    if parts.username or parts.password:
        # The address is not shown, because it contains a secret.
        raise BadConfig(
            "A server's address must not contain a user name or password.", hint="Use a token instead."
        )
    if parts.query or parts.fragment:
        raise BadConfig(f"{given!r} must not have a query or a fragment.", hint=_HINT)
    return given.rstrip("/")


def meant_url(text: str) -> str | None:
    """The URL that a host without `http://` probably means; None if the text does not look like a host. A
    name alone, such as `data`, may be a folder: only `localhost` and IP addresses are hosts."""
    host = text.rstrip("/")
    found = _HOST_AND_PORT.fullmatch(host)
    if found is not None:
        return f"http://{host}"
    bare = host.removeprefix("[").removesuffix("]")
    try:
        six = ipaddress.ip_address(bare).version == 6
    except ValueError:
        if bare.lower() != "localhost":
            return None
        six = False
    return f"http://[{bare}]:{HTTP_PORT}" if six else f"http://{bare}:{HTTP_PORT}"


def token_of(token: str | None) -> str | None:
    """The token, if any."""
    found = token if token is not None else config.client_token()
    if found is not None and (not found.isascii() or not found.isprintable() or " " in found):
        raise BadConfig("The token is invalid: it may contain only letters, digits, - and _.")
    return found or None
