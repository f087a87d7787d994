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

from duetime.api.auth import Role
from duetime.errors import BadConfig, InvalidField

FILE_NAME = "tokens.json"
_PREFIX = "duetime_"


class Token(Struct, frozen=True):
    """One entry of the file."""

    name: str
    role: Role
    sha256: str


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def new(folder: Path, role: str, name: str) -> str:
    """Make a token, add its hash to the folder's file, and give the token: it is not kept anywhere."""
    if role not in Role.__members__:
        raise InvalidField(f"There is no role {role!r}.", hint=f"Use one of {', '.join(Role.__members__)}.")
    tokens = read(folder)
    if any(token.name == name for token in tokens):
        raise InvalidField(f"There is a token named {name!r} already.", hint="Choose another name.")
    token = _PREFIX + secrets.token_urlsafe(32)
    _write(folder, [*tokens, Token(name, Role[role], digest(token))])
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
        return msgspec.json.decode(path.read_bytes(), type=list[Token])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
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
