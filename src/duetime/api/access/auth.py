"""Authorization: roles, and the check of every request's token."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from enum import Enum

from msgspec import Struct

from duetime.api.access.quotas import bearer
from duetime.api.access.scopes import Scope
from duetime.errors import Forbidden, NoToken
from duetime.protocol.terms import Target


class Role(Enum):
    """A role. A token has one or several; it may do what any of them allows."""

    read = "read"
    """Read everything except the headers of callbacks."""
    worker = "worker"
    """Read, and take deliveries."""
    submit = "submit"
    """Read, create and change intents."""
    admin = "admin"
    """Everything."""


# The roles that satisfy each required role.
ALLOWED: Mapping[Role, frozenset[Role]] = {
    Role.read: frozenset(Role),
    Role.worker: frozenset({Role.worker, Role.admin}),
    Role.submit: frozenset({Role.submit, Role.admin}),
    Role.admin: frozenset({Role.admin}),
}
# The roles that see the headers of callbacks, which may contain secrets: those that can create callbacks.
_SEE_HEADERS = ALLOWED[Role.submit]


class Grant(Struct, frozen=True):
    """The permissions of one token."""

    sha256: str
    roles: frozenset[Role]
    scope: Scope | None = None
    """None: every queue and entity type."""


caller: ContextVar[Grant | None] = ContextVar("duetime_caller", default=None)
"""The permissions of the current request's token. None: no token is required."""


def check_target(target: Target) -> None:
    """Raise unless the current caller may use this target."""
    grant = caller.get()
    if grant is not None and grant.scope is not None:
        grant.scope.check(target)


def check_lanes(lanes: Iterable[str]) -> None:
    """Raise unless the current caller may take deliveries from these lanes."""
    grant = caller.get()
    if grant is not None and grant.scope is not None:
        for lane in lanes:
            grant.scope.check_lane(lane)


def own_lanes() -> tuple[str, ...] | None:
    """The lanes that the current caller may use; None: all."""
    grant = caller.get()
    return None if grant is None or grant.scope is None else grant.scope.lanes()


def is_bound() -> bool:
    """Whether the current caller is restricted to some queues and entity types."""
    grant = caller.get()
    return grant is not None and grant.scope is not None


def sees_headers() -> bool:
    """Whether the current caller may see the headers of callbacks. A restricted caller may not."""
    grant = caller.get()
    return grant is None or (not grant.roles.isdisjoint(_SEE_HEADERS) and grant.scope is None)


class Gate:
    """Checks tokens by their hashes. If no token exists, all requests are allowed (only on loopback)."""

    def __init__(self, grants: Callable[[], Sequence[Grant]], digest: Callable[[str], str]) -> None:
        """`grants` returns the current permissions by hash: they may come from a file that changes."""
        self.grants = grants
        self._digest = digest
        self._shared: Sequence[Grant] | None = None
        """The grants that were read in this turn of the event loop."""

    def open(self) -> bool:
        """Whether no token is required."""
        return not self.grants()

    def check(self, headers: Iterable[tuple[bytes, bytes]], role: Role) -> None:
        """Raise unless the token of the request has the role."""
        if grants := self._look():
            self._admit(grants, _token_of(headers), role)

    def admits(self, headers: Iterable[tuple[bytes, bytes]], role: Role) -> bool:
        """Whether the token of the request has the role. For open routes, which show more with a token."""
        try:
            self.check(headers, role)
        except (NoToken, Forbidden):
            return False
        return True

    def check_token(self, token: str | None, role: Role) -> None:
        if grants := self._look():
            self._admit(grants, token, role)

    def _look(self) -> Sequence[Grant]:
        """The grants. Requests in the same turn of the event loop share one check of the file: a check for
        each request would be the most expensive part of a small one."""
        grants = self._shared
        if grants is None:
            grants = self.grants()
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:  # not in an event loop: nothing to share
                return grants
            self._shared = grants
            loop.call_soon(self._forget)
        return grants

    def _forget(self) -> None:
        self._shared = None

    def stands(self, grant: Grant | None) -> bool:
        """Whether the permissions of a caller are unchanged. None: a caller without a token."""
        grants = self.grants()
        return not grants if grant is None else grant in grants

    def _admit(self, grants: Sequence[Grant], token: str | None, role: Role) -> None:
        if token is None:
            raise NoToken("There is no token in the request.")
        given = self._digest(token)
        found: Grant | None = None
        for grant in grants:  # compares with all of them, so that the time reveals nothing
            if hmac.compare_digest(grant.sha256, given):
                found = grant
        if found is None:
            raise NoToken("The token is unknown.")
        bearer.set(given)
        caller.set(found)
        if found.roles.isdisjoint(ALLOWED[role]):
            raise Forbidden(
                f"A token with the role {role_text(found.roles)} may not do this; it needs {role.value}.",
                role=role.value,
            )


def role_text(roles: Iterable[Role]) -> str:
    """Roles as text, such as `worker,submit`, in the order of their declaration."""
    return ",".join(role.value for role in Role if role in roles)


def _token_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    for name, value in headers:
        if name == b"x-duetime-token":
            return value.decode("latin-1")
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return value[7:].strip().decode("latin-1")
    return None
