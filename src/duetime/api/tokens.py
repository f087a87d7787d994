"""Tokens: random, shown once, kept as hashes in a file of the data folder.

A token has 256 random bits, so a plain SHA-256 is enough to keep it: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

import msgspec
from msgspec import Struct

from duetime.api import rates
from duetime.api.auth import Role
from duetime.api.quotas import Quota
from duetime.errors import BadConfig, InvalidField
from duetime.limits import RATE_MAX

FILE_NAME = "tokens.json"
_PREFIX = "duetime_"


# A token that no text has: nobody may do anything.
_NOBODY = [("", Role.read)]


class Token(Struct, frozen=True, omit_defaults=True):
    """One entry of the file."""

    name: str
    role: Role
    sha256: str
    rate: str | None = None
    """How many intents its bearer may make in a time: 100/s."""
    burst: int | None = None
    """How many at once after a pause; the rate's number when nothing is said."""

    def quota(self) -> Quota | None:
        if self.rate is None:
            return None
        rate, period_ms = rates.read(self.rate, "rate")
        return Quota(rate, period_ms, self.burst or rate)


class Known:
    """The tokens of a data folder, read again when their file changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = str(folder / FILE_NAME)
        self._seen: tuple[int, int] | None = None
        self._roles: list[tuple[str, Role]] = []
        self._quotas: dict[str, Quota] = {}

    def roles(self) -> list[tuple[str, Role]]:
        """The hashes, and what their bearers may do."""
        try:
            stat = os.stat(self._path)  # with every request: a third of what Path.stat takes
            now = (stat.st_mtime_ns, stat.st_size)
        except FileNotFoundError:
            now = (0, 0)
        if now != self._seen:
            tokens = read(self._folder)
            self._quotas = {each.sha256: quota for each in tokens if (quota := each.quota()) is not None}
            # A file that was emptied or lost shuts the door that it guarded; it does not open it.
            found = [(token.sha256, token.role) for token in tokens]
            self._roles = found or (_NOBODY if self._roles else [])
            self._seen = now
        return self._roles

    def quota(self, sha256: str) -> Quota | None:
        """How many intents the bearer of a token may make."""
        return self._quotas.get(sha256)


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def new(folder: Path, role: str, name: str, rate: str | None = None, burst: int | None = None) -> str:
    """Make a token, add its hash to the folder's file, and give the token: it is not kept anywhere."""
    if burst is not None and (rate is None or not 1 <= burst <= RATE_MAX):
        raise InvalidField(f"The burst goes with a rate, and is from 1 to {RATE_MAX}.")
    if role not in Role.__members__:
        raise InvalidField(f"There is no role {role!r}.", hint=f"Use one of {', '.join(Role.__members__)}.")
    tokens = read(folder)
    if any(token.name == name for token in tokens):
        raise InvalidField(f"There is a token named {name!r} already.", hint="Choose another name.")
    token = _PREFIX + secrets.token_urlsafe(32)
    made = Token(name, Role[role], digest(token), rate, burst)
    quota = made.quota()
    if quota is not None and quota.rate > RATE_MAX:
        raise InvalidField(f"The rate {rate} is out of range: {RATE_MAX} at the most.")
    _write(folder, [*tokens, made])
    return token


def revoke(folder: Path, name: str) -> bool:
    """Forget a token: it is refused from now on. Gives whether another one is left."""
    tokens = read(folder)
    left = [token for token in tokens if token.name != name]
    if len(left) == len(tokens):
        names = ", ".join(repr(token.name) for token in tokens)
        raise InvalidField(
            f"There is no token named {name!r} in {folder}.",
            hint=f"There are {names}." if tokens else "There is none at all; is it the server's data folder?",
        )
    _write(folder, left)
    return bool(left)


def read(folder: Path) -> list[Token]:
    """The tokens of a data folder; none when there is no file."""
    path = folder / FILE_NAME
    try:
        tokens = msgspec.json.decode(path.read_bytes(), type=list[Token])
        for token in tokens:
            token.quota()
        return tokens
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError, InvalidField) as error:
        raise BadConfig(
            f"{path} cannot be read: {error}.", hint="Restore it, or delete it and make new tokens."
        ) from error


def _write(folder: Path, tokens: list[Token]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{FILE_NAME}.new"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(tokens), indent=2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / FILE_NAME)
