"""Brings intents of a server into any state, by the ways that users have, and waits by its events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from duetime.clock import SystemClock
from tests.http.listener import Listener
from tests.http.server import Reply, ServerProcess
from tests.receiver import Hooks, Say

STATES = ("SCHEDULED", "DUE", "DISPATCHING", "BLOCKED", "ACKED", "DEAD_LETTERED", "EXPIRED", "CANCELED")
FINAL = ("ACKED", "DEAD_LETTERED", "EXPIRED", "CANCELED")
HOUR_MS = 3_600_000


def now_s(plus_ms: int = 0) -> float:
    """Seconds since 1970, as the API takes them."""
    return (SystemClock().now_ms() + plus_ms) / 1000


class Life:
    """Intents in the state one needs."""

    def __init__(
        self, server: ServerProcess, hooks: Hooks, events: Listener, fresh: Callable[[], str]
    ) -> None:
        self.server = server
        self.hooks = hooks
        self.events = events
        self.fresh = fresh
        self._ways: dict[str, Callable[[str, dict[str, Any]], None]] = {
            "SCHEDULED": lambda id, more: self._create(id, {"delayMs": HOUR_MS, **more}),
            "DUE": lambda id, more: self._create(id, {"delayMs": 0, **more}),
            "DISPATCHING": self._dispatching,
            "BLOCKED": self._blocked,
            "ACKED": lambda id, more: self._called(id, more, Say(200, b'{"fine": true}')),
            "DEAD_LETTERED": lambda id, more: self._called(id, more, Say(418)),
            "EXPIRED": lambda id, more: self._create(
                id, {"executeAt": now_s(), "deadline": now_s(200), **more}
            ),
            "CANCELED": self._canceled,
        }

    def at(self, status: str, **more: Any) -> str:
        """The id of an intent that is in this status now. `more` are fields of its creation."""
        id = self.fresh()
        self._ways[status](id, more)
        if status not in ("SCHEDULED", "BLOCKED"):
            self.events.reached(id, status)
        found = self.get(id)
        assert found["status"] == status, found
        return id

    def get(self, id: str) -> Any:
        answer = self.server.ask("GET", f"/v1/intents/{id}")
        assert answer.status == 200, answer.body
        return answer.json

    def do(self, verb: str, id: str, body: Any = None, **headers: str) -> Reply:
        """cancel, fire-now, revive; or patch. Headers with underscores."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if verb == "patch":
            return self.server.ask("PATCH", f"/v1/intents/{id}", {} if body is None else body, named)
        return self.server.ask("POST", f"/v1/intents/{id}/{verb}", body, named)

    def _create(self, id: str, fields: dict[str, Any]) -> None:
        self.server.create(intentId=id, **fields)

    def _dispatching(self, id: str, more: dict[str, Any]) -> None:
        self._create(
            id, {"callback": {"url": self.hooks.hold(id)}, "delayMs": 0, "precisionTier": "FAST", **more}
        )

    def _blocked(self, id: str, more: dict[str, Any]) -> None:
        before = self.fresh()
        self._create(before, {"delayMs": HOUR_MS})
        self._create(id, {"delayMs": 0, "after": [before], **more})

    def _called(self, id: str, more: dict[str, Any], say: Say) -> None:
        url = self.hooks.says(id, say)
        self._create(id, {"callback": {"url": url}, "delayMs": 0, "precisionTier": "FAST", **more})

    def _canceled(self, id: str, more: dict[str, Any]) -> None:
        self._create(id, {"delayMs": HOUR_MS, **more})
        assert self.do("cancel", id).status == 200
