"""The server and the token of a client: as given, or from the environment."""

from __future__ import annotations

from urllib.parse import urlsplit

from duetime import config
from duetime.errors import BadConfig

_HINT = "Write it as http://localhost:7928, or set DUETIME_URL."


def url_of(url: str | None) -> str:
    """The address of a server, validated, without a trailing slash."""
    given = url if url is not None else config.client_url()
    try:
        parts = urlsplit(given)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise BadConfig(f"{given!r} is not the address of a server: {error}.", hint=_HINT) from error
    if parts.scheme not in ("http", "https") or not host:
        raise BadConfig(f"{given!r} is not the address of a server.", hint=_HINT)
    if parts.username or parts.password:
        # The address is not shown, because it contains a secret.
        raise BadConfig(
            "A server's address must not contain a user name or password.", hint="Use a token instead."
        )
    if parts.query or parts.fragment:
        raise BadConfig(f"{given!r} must not have a query or a fragment.", hint=_HINT)
    return given.rstrip("/")


def token_of(token: str | None) -> str | None:
    """The token, if any."""
    found = token if token is not None else config.client_token()
    if found is not None and (not found.isascii() or not found.isprintable() or " " in found):
        raise BadConfig("The token is invalid: it may contain only letters, digits, - and _.")
    return found or None
