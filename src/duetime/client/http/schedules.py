"""The schedules of a server: create, read, pause, trigger and delete them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from duetime.client.app.call import Call
from duetime.client.app.times import Moment
from duetime.client.http.requests import body, moment_text, path, revision, written
from duetime.client.http.transport import Request
from duetime.errors import InvalidField
from duetime.wire.intent import Intent
from duetime.wire.names import camel
from duetime.wire.schedule import Backfill, NextTicks, Schedule, Schedules

if TYPE_CHECKING:
    from duetime.client.http.client import Client


class ServerSchedules:
    """`client.schedules`: recurring rules that create intents."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def put(
        self, id: str, *, intent: Mapping[str, object], expected_revision: int | None = None, **rule: Any
    ) -> Call[Schedule]:
        """Create a schedule or change its rule: `cron` or `every_ms`, `zone`, `jitter_ms`, `start`, `end`,
        `overlap`, `misfire`, `catch_up`, `skip`; `intent` is the intent of each tick, with the arguments of
        `create`."""
        if ("cron" in rule) == ("every_ms" in rule):
            raise InvalidField("A schedule has exactly one of cron and every_ms.")
        fields = {camel(name): value for name, value in rule.items() if value is not None}
        for name in ("start", "end"):
            if name in fields:
                fields[name] = moment_text(fields[name])
        fields["intent"] = written(intent)
        request = Request(
            "PUT", path("schedules", id), body=body(fields), headers=revision(expected_revision)
        )
        return self._client.ask(request, Schedule)

    def list(self) -> Call[Sequence[Schedule]]:
        """All schedules, by id."""
        return self._client.call(self._list())

    def get(self, id: str) -> Call[Schedule]:
        return self._client.ask(Request("GET", path("schedules", id)), Schedule)

    def pause(self, id: str) -> Call[Schedule]:
        """Pause it: no ticks until it is resumed."""
        return self._client.ask(Request("POST", path("schedules", id, "pause")), Schedule)

    def resume(self, id: str) -> Call[Schedule]:
        """Resume it. Ticks of the pause are skipped."""
        return self._client.ask(Request("POST", path("schedules", id, "resume")), Schedule)

    def trigger(self, id: str) -> Call[Intent]:
        """Create an extra intent of it now."""
        return self._client.ask(Request("POST", path("schedules", id, "trigger")), Intent)

    def backfill(self, id: str, since: Moment, until: Moment) -> Call[Backfill]:
        """Create the intents of past ticks that have none, of at most 1,000 ticks."""
        fields = {"from": moment_text(since), "to": moment_text(until)}
        return self._client.ask(
            Request("POST", path("schedules", id, "backfill"), body=body(fields)), Backfill
        )

    def next(self, id: str, count: int = 5) -> Call[Sequence[datetime]]:
        """The next ticks."""
        return self._client.call(self._next(id, count))

    def delete(self, id: str) -> Call[Schedule]:
        """Delete it. Its existing intents are kept."""
        return self._client.ask(Request("DELETE", path("schedules", id)), Schedule)

    async def _list(self) -> Sequence[Schedule]:
        found: Schedules = await self._client.ask(Request("GET", "/v1/schedules"), Schedules)
        return found.schedules

    async def _next(self, id: str, count: int) -> Sequence[datetime]:
        request = Request("GET", path("schedules", id, "next"), [("count", str(count))])
        found: NextTicks = await self._client.ask(request, NextTicks)
        return found.times
