"""Tokens: random, shown once, stored as hashes in a file of the data folder.

A token has 256 random bits and cannot be guessed, so a plain SHA-256 is sufficient. The file is replaced as a
whole, by one process at a time, so that a revoked token does not reappear.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from duetime import private_files
from duetime.api.access.auth import Grant, Role, role_text
from duetime.api.access.quotas import Quota
from duetime.api.access.scopes import Scope
from duetime.errors import BadConfig, InvalidField
from duetime.limits import NAME_CHARS_MAX, RATE_MAX, SOURCES_MAX
from duetime.wire import rates

FILE_NAME = "tokens.json"
_LOCK_NAME = ".tokens.lock"
_PREFIX = "duetime_"
_logger = logging.getLogger("duetime")

# The hash of no token: all requests are refused.
_NOBODY = (Grant("", frozenset()),)
# Roles that can be restricted: the rights of the others do not concern queues.
_BOUND = (Role.worker, Role.submit)


class Token(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One entry of the file."""

    name: str
    role: Role | tuple[Role, ...]
    """One role, or several as a list."""
    sha256: str
    rate: str | None = None
    """The maximum rate of created intents, such as 100/s."""
    burst: int | None = None
    """The burst after a pause; by default the number of the rate."""

    queues: tuple[str, ...] = ()
    """The queues that its holder may use. Without queues and entity types: everything."""
    entity_types: tuple[str, ...] = ()

    @property
    def roles(self) -> frozenset[Role]:
        return frozenset((self.role,) if isinstance(self.role, Role) else self.role)

    def grant(self) -> Grant:
        bound = bool(self.queues or self.entity_types)
        return Grant(self.sha256, self.roles, Scope(self.queues, self.entity_types) if bound else None)

    def quota(self) -> Quota | None:
        if self.rate is None:
            return None
        rate, period_ms = rates.read(self.rate, "rate")
        return Quota(rate, period_ms, self.burst or rate)


class Known:
    """The tokens of a data folder, read again when their file changes. If the file cannot be read, the tokens
    known before stay valid, and `trouble` has the reason."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = str(folder / FILE_NAME)
        self._seen: tuple[int, int, int] | None = None
        self._grants: tuple[Grant, ...] = ()
        self._quotas: dict[str, Quota] = {}
        self._trouble = ""
        self._unsure = False
        """Whether the last check of the file failed, so that its contents are unknown."""

    def trouble(self) -> str:
        """The reason why the file cannot be used now; empty if it can."""
        self.grants()
        return self._trouble

    def grants(self) -> tuple[Grant, ...]:
        """The permissions by hash. Raises only if the file was never read."""
        try:
            stat = os.stat(self._path)  # runs with every request, and takes a third of the time of Path.stat
            now = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        except FileNotFoundError:
            now = (0, 0, 0)
        except OSError as error:  # unknown: check again with the next request
            self._failed(error)
            self._unsure = True
            return self._grants
        if now != self._seen or self._unsure:
            try:
                self._take(read(self._folder))
            except BadConfig as error:
                self._failed(error)
                if isinstance(
                    error.__cause__, OSError
                ):  # for example no file descriptor left: it may be temporary
                    self._unsure = True
                    return self._grants
            self._seen, self._unsure = now, False
        return self._grants

    def _take(self, tokens: list[Token]) -> None:
        self._quotas = {each.sha256: quota for each in tokens if (quota := each.quota()) is not None}
        # If the file was emptied or deleted, all requests are refused; access is not opened.
        self._grants = tuple(token.grant() for token in tokens) or (_NOBODY if self._grants else ())
        self._trouble = ""

    def _failed(self, error: Exception) -> None:
        if self._seen is None:
            raise error
        if not self._trouble:
            _logger.error("The tokens are unchanged because the file cannot be read: %s", error)
        self._trouble = str(error)

    def quota(self, sha256: str) -> Quota | None:
        """The quota of a token."""
        return self._quotas.get(sha256)


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def new(
    folder: Path,
    role: str,
    name: str,
    rate: str | None = None,
    burst: int | None = None,
    queues: tuple[str, ...] = (),
    entity_types: tuple[str, ...] = (),
) -> str:
    """Create a token, add its hash to the file of the folder, and return the token. Only the hash is
    stored. `role`: one role, or several separated by commas."""
    if burst is not None and (rate is None or not 1 <= burst <= RATE_MAX):
        raise InvalidField(f"The burst requires a rate and must be from 1 to {RATE_MAX}.")
    roles = roles_of(role)
    _check_scope(roles, (*queues, *entity_types))
    token = _PREFIX + secrets.token_urlsafe(32)
    made = Token(
        name, roles[0] if len(roles) == 1 else roles, digest(token), rate, burst, queues, entity_types
    )
    quota = made.quota()
    if quota is not None and quota.rate > RATE_MAX:
        raise InvalidField(f"The rate {rate} is out of range: {RATE_MAX} at most.")
    with _changing(folder) as tokens:
        if any(each.name == name for each in tokens):
            raise InvalidField(f"A token named {name!r} already exists.", hint="Choose another name.")
        _write(folder, [*tokens, made])
    return token


def roles_of(text: str) -> tuple[Role, ...]:
    """The roles in a text such as `worker,submit`, each once."""
    names = list(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in Role.__members__:
            raise InvalidField(
                f"There is no role {name!r}.", hint=f"Use one or several of {', '.join(Role.__members__)}."
            )
    return tuple(role for role in Role if role.value in names)


def _check_scope(roles: tuple[Role, ...], names: tuple[str, ...]) -> None:
    if names and not set(roles) <= set(_BOUND):
        raise InvalidField(
            f"A token of the role {role_text(roles)} cannot be bound to queues or entity types.",
            hint=f"Only {' and '.join(each.value for each in _BOUND)} can be.",
        )
    if len(names) > SOURCES_MAX:
        raise InvalidField(f"A token is bound to at most {SOURCES_MAX} queues and entity types.")
    for name in names:
        if not 1 <= len(name) <= NAME_CHARS_MAX:
            raise InvalidField(f"The name of a queue or entity type has 1 to {NAME_CHARS_MAX} characters.")


def revoke(folder: Path, name: str) -> bool:
    """Revoke a token: it is refused from now on. Returns whether another token exists."""
    _without(folder, read(folder), name)  # before anything is created on disk
    with _changing(folder) as tokens:
        left = _without(folder, tokens, name)
        _write(folder, left)
    return bool(left)


def _without(folder: Path, tokens: list[Token], name: str) -> list[Token]:
    left = [token for token in tokens if token.name != name]
    if len(left) == len(tokens):
        names = ", ".join(repr(token.name) for token in tokens)
        raise InvalidField(
            f"There is no token named {name!r} in {folder}.",
            hint=f"There are {names}."
            if tokens
            else "The folder has no tokens. Is it the server's data folder?",
        )
    return left


def read(folder: Path) -> list[Token]:
    """The tokens of a data folder; none without a file."""
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
            f"{path} cannot be read: {error}.", hint="Restore the file, or delete it and create new tokens."
        ) from error


@contextlib.contextmanager
def _changing(folder: Path) -> Iterator[list[Token]]:
    """The current tokens, under a lock against other processes."""
    with private_files.locked(folder / _LOCK_NAME):
        yield read(folder)


def _write(folder: Path, tokens: list[Token]) -> None:
    text = msgspec.json.format(msgspec.json.encode(tokens), indent=2) + b"\n"
    private_files.replace_file(folder / FILE_NAME, text)
