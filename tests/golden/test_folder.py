"""A data folder written by an earlier version: today's engine opens it, shows the same, and continues."""

from __future__ import annotations

import asyncio
import json
import tarfile
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from duetime import serving, wiring
from duetime.channels.local.inline import InlineChannel
from duetime.config import Config
from duetime.engine.dispatcher import Dispatcher
from duetime.engine.engine import Engine
from duetime.protocol.command import Resume, Revive
from duetime.protocol.intent import FINAL, Item, Status, Ties
from duetime.protocol.terms import AckLevel, Callback, Entity, Stream, Task, Terms
from duetime.settings import DataSettings, ServerSettings
from duetime.testing.time import ManualClock, pass_time
from tests.flaws.rig import Handler
from tests.golden.compare import differences
from tests.golden.write_folder import DAY_MS, FOLDER, HOUR_MS

MINUTE_MS = 60_000
ARCHIVES = sorted(FOLDER.glob("*.tar.xz"))
# What the restart changes: a webhook in flight is lost and sent again, and makes room for another.
CHANGED = {"running-callback", "due-limit"}


class Kept(NamedTuple):
    """A folder of an earlier version, and the last answers of its server."""

    data: Path
    answers: Any

    @property
    def at_ms(self) -> int:
        """When the server was killed."""
        return int(self.answers["at"] * 1_000)


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def kept(request, tmp_path):
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    return Kept(tmp_path / "data", json.loads((tmp_path / "answers.json").read_text("utf-8")))


class Served:
    """A server of today on the folder, at the time of its last answer."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token

    async def ask(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        status, answer = await asyncio.to_thread(self._ask, method, path, body, token or self.token)
        return {"httpStatus": status, **answer}

    def _ask(self, method: str, path: str, body: Any, token: str) -> tuple[int, Any]:
        headers = {"x-duetime-token": token, "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


@asynccontextmanager
async def served(kept: Kept) -> AsyncIterator[Served]:
    config = Config(data=DataSettings(dir=str(kept.data)), server=ServerSettings(port=0, grpc_port=0))
    server = serving.make(config, clock=ManualClock(kept.at_ms))
    listening: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(server.run(listening.set_result))
    try:
        await asyncio.wait([listening, running], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        yield Served(listening.result().http, kept.answers["tokens"]["ops"])
    finally:
        server.stop()
        await running


def test_the_folder_has_intents_in_every_status(kept):
    statuses = {intent["status"] for intent in kept.answers["intents"].values()}
    assert statuses == {status.name for status in Status}


def test_the_folder_has_a_checkpoint_and_a_log_behind_it(kept):
    report = wiring.verify(kept.data)
    assert not report.findings
    assert report.rows > 40
    assert report.replayed > 10


def test_every_answer_is_as_it_was(kept):
    async def main() -> None:
        async with served(kept) as server:
            found = (await server.ask("GET", "/v1/intents?limit=500"))["items"]
            intents = {intent["intentId"]: intent for intent in found}
            assert intents.keys() == kept.answers["intents"].keys()
            for id, then in kept.answers["intents"].items():
                if id not in CHANGED:
                    assert not differences(intents[id], then, id)
            schedules = await server.ask("GET", "/v1/schedules")
            assert not differences(schedules["schedules"], kept.answers["schedules"])
            for group in kept.answers["groups"]:
                assert not differences(await server.ask("GET", f"/v1/groups/{group['groupId']}"), group)

    asyncio.run(main())


def test_every_history_continues(kept):
    async def main() -> None:
        async with served(kept) as server:
            for id, entries in kept.answers["histories"].items():
                today = (await server.ask("GET", f"/v1/intents/{id}/history"))["entries"]
                told = [(entry["status"], entry["note"]) for entry in today]
                then = [(entry["status"], entry["note"]) for entry in entries]
                assert told[: len(then)] == then
                assert id in CHANGED or len(told) == len(then)

    asyncio.run(main())


def test_queues_are_paused_and_limited_as_they_were(kept):
    settings = ("paused", "pushed", "concurrency", "rate", "burst", "pendingMax", "priority", "order")

    async def main() -> None:
        async with served(kept) as server:
            lanes = {lane["name"]: lane for lane in (await server.ask("GET", "/v1/admin/lanes"))["lanes"]}
            for then in kept.answers["lanes"]:
                if then["name"].startswith("entities:"):
                    continue  # only there while a worker asks for messages of this type
                today = lanes[then["name"]]
                assert {name: today[name] for name in settings} == {name: then[name] for name in settings}

    asyncio.run(main())


def test_tokens_are_still_known(kept):
    async def main() -> None:
        tokens = kept.answers["tokens"]
        async with served(kept) as server:
            assert (await server.ask("GET", "/v1/schedules", token="duetime_other"))["httpStatus"] == 401
            body = {"stream": {"name": "news"}, "delayMs": 0}
            assert (await server.ask("POST", "/v1/intents", body, token=tokens["shop"]))["httpStatus"] == 201
            pause = await server.ask("POST", "/v1/admin/lanes/task:x/pause", token=tokens["shop"])
            assert pause["httpStatus"] == 403
        rows = {row.name: row for row in wiring.tokens(kept.data)}
        assert (rows["ops"].role, rows["shop"].role) == ("admin", "submit")
        assert (rows["shop"].rate, rows["shop"].burst) == ("100/s", 10)

    asyncio.run(main())


def test_keys_and_claims_are_still_held(kept):
    later = {"stream": {"name": "news"}, "delayMs": HOUR_MS}

    async def main() -> None:
        async with served(kept) as server:

            async def create(**fields: Any) -> Any:
                return await server.ask("POST", "/v1/intents", later | fields)

            # The same request again, of an intent in the checkpoint and of one on the log.
            again = await create(intentId="key-live", idempotencyKey="live")
            assert (again["httpStatus"], again["intentId"]) == (200, "key-live")
            again = await create(intentId="tail-scheduled", idempotencyKey="tail", payload={"in": "the log"})
            assert (again["httpStatus"], again["intentId"]) == (200, "tail-scheduled")
            other = await create(idempotencyKey="live", payload="something else")
            assert other["httpStatus"] == 409
            reused = await create(idempotencyKey="acked", onDuplicate="reject")
            assert reused["httpStatus"] == 409
            for key, holder in {
                "until-START": "unique-START",
                "until-END": "unique-END",
                "until-TIME": "unique-TIME",
                "daily": "acked-unique-time",
                "tail": "tail-unique",
            }.items():
                kept_out = await create(unique={"key": key})
                assert (kept_out["httpStatus"], kept_out["intentId"]) == (200, holder)
            replaced = await create(intentId="collapse-3", collapseKey="key-DEBOUNCE", collapse="DEBOUNCE")
            assert replaced["httpStatus"] == 201
            gone = await server.ask("GET", "/v1/intents/collapse-DEBOUNCE-2")
            assert gone["status"] == "CANCELED"

    asyncio.run(main())


@asynccontextmanager
async def engine_on(kept: Kept, clock: ManualClock, handler: Handler) -> AsyncIterator[Engine]:
    """An engine of today on the folder; one handler gets the deliveries of all targets."""
    config = Config()
    log, store = wiring.in_folder(kept.data, config)
    channel = InlineChannel(lambda delivery: handler)
    dispatcher = Dispatcher(dict.fromkeys((Callback, Task, Entity, Stream), channel))
    pushed = ("callback", "task", "entity", "stream")
    options = wiring.options(config, config.store.horizon_ms, pushed)
    engine = Engine(log, store, clock, dispatcher, options)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close(0)


def test_everything_continues(kept):
    clock, handler = ManualClock(kept.at_ms), Handler(None)
    ran = handler.ran

    async def until(engine: Engine, ms: int) -> set[str]:
        """What runs until this long after the folder was left."""
        before = len(ran)
        await pass_time(engine, clock, kept.at_ms + ms)
        return set(ran[before:])

    def waiting(engine: Engine) -> set[str]:
        views = [engine.reads.get(id) for id in kept.answers["intents"]]
        return {view.id for view in views if view is not None and view.status not in FINAL}

    def status(engine: Engine, id: str) -> Status:
        view = engine.reads.get(id)
        assert view is not None
        return view.status

    async def first() -> None:
        async with engine_on(kept, clock, handler) as engine:
            # Due when the former process was killed. The queue that is paused stays so.
            due = {"due-limit", "due-limited-1", "due-limited-2", "due-stream"}
            assert await until(engine, 0) == due
            # A lost webhook is retried.
            soon = await until(engine, 11 * MINUTE_MS)
            assert {id for id in soon if "@" not in id} == {"running-callback", "due-after-restart"}
            # Everything else has its time in an hour; leases of the former workers end then, too.
            later = await until(engine, HOUR_MS + MINUTE_MS)
            # The schedules tick on the hour.
            hour_ms = kept.at_ms - kept.at_ms % HOUR_MS + HOUR_MS
            assert {f"{id}@{hour_ms}" for id in ("every", "ending")} <= soon | later
            assert waiting(engine) == {"collapse-DEBOUNCE-2", "due-paused", "group-open", "scheduled-far"}
            lost_or_late = ("dead-revived", "retrying", "running-task")
            for id in ("chain-3", "group-running", "tail-blocked", *lost_or_late):
                assert status(engine, id) is Status.ACKED
            assert status(engine, "running-entity") is Status.DEAD_LETTERED  # never started twice
            messages = [f"scheduled-entity-{number}" for number in (1, 2, 3)]
            assert [id for id in ran if id in messages] == messages
            assert ran.index("chain-1") < ran.index("chain-2") < ran.index("chain-3")

    async def second() -> None:
        """The engine is restarted on what it has made of the folder."""
        async with engine_on(kept, clock, handler) as engine:
            assert waiting(engine) == {"collapse-DEBOUNCE-2", "due-paused", "group-open", "scheduled-far"}
            await engine.ask(Resume("task:paused"))
            await engine.ask(Revive("dead-callback"))
            terms = Terms(Stream("news"), "stream:news")
            for number in (1, 2):
                item = Item(f"group-open.{number}", 0, clock.now_ms(), ties=Ties(group="group-open"))
                await engine.submit_one(terms, item, AckLevel.DURABLE)
            for id in ("every", "ending", "tail"):
                await engine.schedules.drop(id)
            await engine.schedules.resume("paused")
            await until(engine, HOUR_MS + 2 * MINUTE_MS)
            assert {"due-paused", "dead-callback", "group-open.1", "group-open.2", "group-open"} <= set(ran)
            later = await until(engine, 3 * HOUR_MS)
            assert "collapse-DEBOUNCE-2" in later
            assert any(id.startswith("paused@") for id in later)
            await engine.schedules.drop("paused")
            assert "scheduled-far" in await until(engine, 401 * DAY_MS)
            assert not waiting(engine)

    asyncio.run(first())
    asyncio.run(second())
    assert len(ran) == len(set(ran))
