"""Who may do what: roles, and the gate that every request passes."""

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
    """What a token's holder may do."""

    read = "read"
    """Look at everything but the headers of callbacks."""
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
# Who is shown the headers of callbacks, which may hold secrets: those who can send them anyway.
_SEE_HEADERS = ALLOWED[Role.submit]


class Grant(Struct, frozen=True):
    """What the holder of one token may do."""

    sha256: str
    role: Role
    scope: Scope | None = None
    """None: every queue and entity type."""


caller: ContextVar[Grant | None] = ContextVar("duetime_caller", default=None)
"""What the token allows that came with the request which is answered just now. None: no token is needed."""


def check_target(target: Target) -> None:
    """Raise unless whoever asks just now may use this target."""
    grant = caller.get()
    if grant is not None and grant.scope is not None:
        grant.scope.check(target)


def check_lanes(lanes: Iterable[str]) -> None:
    """Raise unless whoever asks just now may take deliveries from these lanes."""
    grant = caller.get()
    if grant is not None and grant.scope is not None:
        for lane in lanes:
            grant.scope.check_lane(lane)


def own_lanes() -> tuple[str, ...] | None:
    """The lanes that whoever asks just now may use; None: all."""
    grant = caller.get()
    return None if grant is None or grant.scope is None else grant.scope.lanes()


def is_bound() -> bool:
    """Whether whoever asks just now may use only some queues and entity types."""
    grant = caller.get()
    return grant is not None and grant.scope is not None


def sees_headers() -> bool:
    """Whether whoever asks just now may see the headers of callbacks. Who is bound can send no callback."""
    grant = caller.get()
    return grant is None or (grant.role in _SEE_HEADERS and grant.scope is None)


class Gate:
    """Knows the hashes of the tokens. Without any token everybody may do everything (loopback only)."""

    def __init__(self, grants: Callable[[], Sequence[Grant]], digest: Callable[[str], str]) -> None:
        """`grants` gives them as they are now: they may come from a file that changes."""
        self.grants = grants
        self._digest = digest
        self._shared: Sequence[Grant] | None = None
        """What this pass of the loop has seen."""

    def open(self) -> bool:
        """Whether nobody needs a token."""
        return not self.grants()

    def check(self, headers: Iterable[tuple[bytes, bytes]], role: Role) -> None:
        """Raise unless the request's token allows it."""
        if grants := self._look():
            self._admit(grants, _token_of(headers), role)

    def admits(self, headers: Iterable[tuple[bytes, bytes]], role: Role) -> bool:
        """Whether the request's token allows it. For open routes, which say more to those who have one."""
        try:
            self.check(headers, role)
        except (NoToken, Forbidden):
            return False
        return True

    def check_token(self, token: str | None, role: Role) -> None:
        if grants := self._look():
            self._admit(grants, token, role)

    def _look(self) -> Sequence[Grant]:
        """The grants. Requests that came together, in one pass of the loop, share one look at the file: with
        each of them it was the dearest part of a small one."""
        grants = self._shared
        if grants is None:
            grants = self.grants()
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:  # nothing comes together
                return grants
            self._shared = grants
            loop.call_soon(self._forget)
        return grants

    def _forget(self) -> None:
        self._shared = None

    def stands(self, grant: Grant | None) -> bool:
        """Whether what was granted to a caller is granted still, word for word. None: without a token."""
        grants = self.grants()
        return not grants if grant is None else grant in grants

    def _admit(self, grants: Sequence[Grant], token: str | None, role: Role) -> None:
        if token is None:
            raise NoToken("There is no token in the request.")
        given = self._digest(token)
        found: Grant | None = None
        for grant in grants:  # all of them, so that the time taken says nothing
            if hmac.compare_digest(grant.sha256, given):
                found = grant
        if found is None:
            raise NoToken("The token is unknown.")
        bearer.set(given)
        caller.set(found)
        if found.role not in ALLOWED[role]:
            raise Forbidden(
                f"A token with the role {found.role.value} may not do this; it needs {role.value}.",
                role=role.value,
            )


def _token_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    for name, value in headers:
        if name == b"x-duetime-token":
            return value.decode("latin-1")
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return value[7:].strip().decode("latin-1")
    return None
