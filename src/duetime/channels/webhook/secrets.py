"""The secrets of endpoints, in a file of the data folder. A running server reads it again when it changes.

HMAC needs the secrets themselves, so the file contains them. Only its owner can read it. They are never
logged, and no interface shows them after they were created.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from yarl import URL

from duetime import private_files
from duetime.channels.webhook.addresses import problem_with
from duetime.channels.webhook.signing import Signer, new_secret
from duetime.clock import Clock
from duetime.errors import BadConfig, InvalidField
from duetime.limits import SIGNING_ENDPOINTS_MAX, SIGNING_LOOK_MS, SIGNING_SECRETS_MAX

FILE_NAME: Final = "webhook-secrets.json"
_LOCK_NAME: Final = ".webhook-secrets.lock"
_logger = logging.getLogger("duetime")


class EndpointSecrets(Struct):
    """The secrets of one endpoint, newest first."""

    url: str
    """The origin and the beginning of the path."""
    secrets: tuple[str, ...]


class Signers:
    """The signer of each endpoint: of the longest matching URL, or the default."""

    def __init__(self, default: str, clock: Clock, folder: Path | None = None) -> None:
        """`default`: one or two secrets separated by spaces, for the other endpoints."""
        self._default = Signer(default.split()) if default.strip() else None
        self._now_ms = clock.now_ms
        self._folder = folder
        self._looked_ms = 0
        self._seen: tuple[int, int, int] | None = None
        self._prefixes: list[tuple[str, Signer]] = []
        self._known: dict[str, Signer | None] = {}
        if folder is not None:
            self._take(read(folder))

    def of(self, endpoint: str) -> Signer | None:
        """The signer of a URL without its query; None: calls are not signed."""
        if self._folder is not None and (now_ms := self._now_ms()) - self._looked_ms >= SIGNING_LOOK_MS:
            self._looked_ms = now_ms
            self._look(self._folder)
        try:
            return self._known[endpoint]
        except KeyError:
            if len(self._known) >= SIGNING_ENDPOINTS_MAX:
                self._known.clear()
            found = next((signer for url, signer in self._prefixes if _covers(url, endpoint)), self._default)
            self._known[endpoint] = found
            return found

    def _look(self, folder: Path) -> None:
        """Read the file if it has changed. A file that cannot be read changes nothing."""
        try:
            stat = os.stat(folder / FILE_NAME)
            now = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        except OSError:
            now = (0, 0, 0)
        if now == self._seen:
            return
        self._seen = now
        try:
            self._take(read(folder))
        except BadConfig as error:
            _logger.error("The secrets of webhooks are unchanged: %s", error)

    def _take(self, found: list[EndpointSecrets]) -> None:
        ordered = sorted(found, key=lambda each: len(each.url), reverse=True)
        self._prefixes = [(each.url, Signer(each.secrets)) for each in ordered]
        self._known.clear()


def _covers(url: str, endpoint: str) -> bool:
    return endpoint == url or endpoint.startswith(url if url.endswith("/") else f"{url}/")


def read(folder: Path) -> list[EndpointSecrets]:
    """The secrets of a data folder; none without a file. Errors do not show them."""
    path = folder / FILE_NAME
    try:
        found = msgspec.json.decode(path.read_bytes(), type=list[EndpointSecrets])
        for each in found:
            Signer(each.secrets)
        return found
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError, BadConfig) as error:
        raise BadConfig(
            f"{path} cannot be read: {error}", hint="Restore the file, or delete it and create new secrets."
        ) from error


def add(folder: Path, url: str) -> tuple[str, EndpointSecrets]:
    """Create a secret for an endpoint. The one before stays valid until it is retired."""
    place = endpoint_of(url)
    made = new_secret()
    with private_files.locked(folder / _LOCK_NAME):
        found = {each.url: each for each in read(folder)}
        before = found[place].secrets if place in found else ()
        if len(before) >= SIGNING_SECRETS_MAX:
            raise InvalidField(
                f"{place} has two valid secrets already.",
                hint="Retire the older one first, when the receiver knows the newer one.",
            )
        if len(found) >= SIGNING_ENDPOINTS_MAX:
            raise InvalidField(f"There are {SIGNING_ENDPOINTS_MAX} endpoints with secrets, the most allowed.")
        found[place] = EndpointSecrets(place, (made, *before))
        _write(folder, found)
        return made, found[place]


def retire(folder: Path, url: str) -> EndpointSecrets:
    """Keep only the newest secret of an endpoint."""
    place = endpoint_of(url)
    with private_files.locked(folder / _LOCK_NAME):
        found = {each.url: each for each in read(folder)}
        found[place] = EndpointSecrets(place, _known(folder, found, place).secrets[:1])
        _write(folder, found)
        return found[place]


def delete(folder: Path, url: str) -> None:
    """Delete all secrets of an endpoint: its calls are signed with the default secret, if there is one."""
    place = endpoint_of(url)
    with private_files.locked(folder / _LOCK_NAME):
        found = {each.url: each for each in read(folder)}
        _known(folder, found, place)
        del found[place]
        _write(folder, found)


def endpoint_of(url: str) -> str:
    """The origin and path of a URL, as endpoints are compared."""
    problem = problem_with(url)
    if problem is not None:
        raise InvalidField(problem)
    made = URL(url)
    if made.raw_query_string or made.raw_fragment:
        raise InvalidField("A secret is for a host or a path.", hint="Omit the query of the URL.")
    return str(made.origin()) + made.raw_path


def _known(folder: Path, found: dict[str, EndpointSecrets], place: str) -> EndpointSecrets:
    if place not in found:
        raise InvalidField(
            f"There is no secret for {place} in {folder}.", hint="`duetime secret list` lists the endpoints."
        )
    return found[place]


def _write(folder: Path, found: dict[str, EndpointSecrets]) -> None:
    text = msgspec.json.format(msgspec.json.encode(list(found.values())), indent=2) + b"\n"
    private_files.replace_file(folder / FILE_NAME, text)
