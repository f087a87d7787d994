"""Who may do what: roles, and the gate that every request passes."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from duetime.api.quotas import bearer
from duetime.errors import Forbidden, NoToken


class Role(Enum):
    """What a token's holder may do."""

    read = "read"
    """Look at everything."""
    worker = "worker"
    """Look, and take deliveries."""
    submit = "submit"
    """Look, make and change intents."""
    admin = "admin"
    """Everything."""


# Which roles may do what a route asks for.
ALLOWED: Mapping[Role, frozenset[Role]] = {
    Role.read: frozenset(Role),
    Role.worker: frozenset({Role.worker, Role.admin}),
    Role.submit: frozenset({Role.submit, Role.admin}),
    Role.admin: frozenset({Role.admin}),
}


class Gate:
    """Knows the hashes of the tokens. Without any token everybody may do everything (loopback only)."""

    def __init__(
        self, tokens: Callable[[], Iterable[tuple[str, Role]]], digest: Callable[[str], str]
    ) -> None:
        """`tokens` gives (hash, role) as they are now: it may be a file that changes."""
        self._tokens = tokens
        self._digest = digest

    def open(self) -> bool:
        """Whether nobody needs a token."""
        return not list(self._tokens())

    def check(self, headers: Iterable[tuple[bytes, bytes]], role: Role) -> None:
        """Raise unless the request's token allows it."""
        if tokens := list(self._tokens()):
            self._admit(tokens, _token_of(headers), role)

    def admits(self, headers: Iterable[tuple[bytes, bytes]], role: Role) -> bool:
        """Whether the request's token allows it. For open routes, which say more to those who have one."""
        try:
            self.check(headers, role)
        except (NoToken, Forbidden):
            return False
        return True

    def check_token(self, token: str | None, role: Role) -> None:
        if tokens := list(self._tokens()):
            self._admit(tokens, token, role)

    def _admit(self, tokens: list[tuple[str, Role]], token: str | None, role: Role) -> None:
        if token is None:
            raise NoToken("There is no token in the request.")
        given = self._digest(token)
        found: Role | None = None
        for known, its_role in tokens:  # all of them, so that the time taken says nothing
            if hmac.compare_digest(known, given):
                found = its_role
        if found is None:
            raise NoToken("The token is not known.")
        bearer.set(given)
        if found not in ALLOWED[role]:
            raise Forbidden(
                f"A token of the role {found.value} may not do this; it needs {role.value}.", role=role.value
            )


def _token_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    for name, value in headers:
        if name == b"x-duetime-token":
            return value.decode("latin-1")
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return value[7:].strip().decode("latin-1")
    return None
