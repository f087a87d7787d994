"""A handle for one intent: its result, its status, and changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from duetime.client.app.call import Call
from duetime.client.app.habits import HANDLES, missing
from duetime.client.app.options import Changes
from duetime.client.app.payload import decode
from duetime.client.app.plan import patch_of
from duetime.client.app.times import Delay, delay_ms
from duetime.errors import NoSuchIntent, NotAcked, ResultGone, WaitTimedOut
from duetime.limits import PAGE_MAX
from duetime.protocol.command import Cancel, FireNow, Patch, Revive
from duetime.wire.history import Entry, Parent, Why
from duetime.wire.intent import Intent, Status

if TYPE_CHECKING:
    from duetime.client.app.app import App

R = TypeVar("R")
T = TypeVar("T")


class Handle(Generic[R]):
    """Refers to one intent by its id. `app.handle(id)` creates it again."""

    __slots__ = ("_app", "_returns", "id")

    def __init__(self, app: App, id: str, returns: object = Any) -> None:
        self._app = app
        self._returns = returns
        self.id = id

    def __repr__(self) -> str:
        return f"Handle({self.id!r})"

    if not TYPE_CHECKING:  # a type checker finds a wrong name itself
        __getattr__ = missing("A handle", HANDLES)

    def result(self, timeout: Delay | None = None) -> Call[R]:
        """Wait for the end, and return the result. Raises `NotAcked` with the reason if it failed."""
        return self._app.call(self._result(timeout))

    def status(self) -> Call[Status]:
        """The current status."""
        return self._app.call(self._status())

    def view(self) -> Call[Intent]:
        """The intent with all fields."""
        return self._app.call(self._view())

    def why(self) -> Call[Why]:
        """Why it has not run yet, or how it ended, as a sentence."""
        return self._app.call(self._why())

    def history(self) -> Call[list[Entry]]:
        """All state transitions, with times."""
        return self._app.call(self._history())

    def logs(self) -> Call[list[str]]:
        """The log lines of the newest attempt that has ended."""
        return self._app.call(self._logs())

    def cancel(self, *, tree: bool = False) -> Call[Intent]:
        """Cancel it, even while it runs. `tree`: also its dependents and its group's members."""
        return self._app.call(self._ask(Cancel(self.id, tree=tree)))

    def parents(self) -> Call[list[Parent]]:
        """The dependencies, or the members of its group, with their results, in order."""
        return self._app.call(self._parents())

    def patch(self, **changes: Unpack[Changes]) -> Call[Intent]:
        """Change it while it waits. Omitted fields are unchanged; `deadline=None` removes the deadline."""
        return self._app.call(self._ask(patch_of(self.id, changes)))

    def fire(self) -> Call[Intent]:
        """Make it due now."""
        return self._app.call(self._ask(FireNow(self.id)))

    def revive(self) -> Call[Intent]:
        """Retry a dead letter, with a new set of attempts."""
        return self._app.call(self._ask(Revive(self.id)))

    async def _result(self, timeout: Delay | None) -> R:
        limit_s = None if timeout is None else delay_ms(timeout) / 1000
        try:
            async with asyncio.timeout(limit_s):
                ended = await self._app.backend.wait(self.id)
        except TimeoutError:
            raise WaitTimedOut(f"{self.id!r} did not end within {timeout!r}.") from None
        if ended.status is not Status.ACKED:
            intent = ended.show()
            error = intent.last_error
            reason = f": {error.kind}: {error.message}." if error is not None else "."
            raise NotAcked(f"{self.id!r} ended as {intent.status}{reason}", view=intent)
        if ended.result_gone:
            raise ResultGone(
                f"The result of {self.id!r} is no longer available: its result_ttl has passed.",
                view=ended.show(),
            )
        value: R = decode(ended.result, self._returns) if ended.result is not None else None  # type: ignore[assignment]
        return value

    async def _status(self) -> Status:
        return (await self._view()).status

    async def _view(self) -> Intent:
        return self._there(await self._app.backend.get(self.id))

    async def _why(self) -> Why:
        return self._there(await self._app.backend.why(self.id))

    async def _history(self) -> list[Entry]:
        return self._there(await self._app.backend.history(self.id))

    async def _logs(self) -> list[str]:
        return self._there(await self._app.backend.logs(self.id))

    async def _parents(self) -> list[Parent]:
        found: list[Parent] = []
        while True:
            some = self._there(await self._app.backend.parents(self.id, len(found), PAGE_MAX))
            found += some
            if not some:
                return found

    async def _ask(self, command: Cancel | FireNow | Patch | Revive) -> Intent:
        await self._app.backend.ask(command)
        return await self._view()

    def _there(self, found: T | None) -> T:
        if found is None:
            raise NoSuchIntent(f"There is no intent with the id {self.id!r}.")
        return found
