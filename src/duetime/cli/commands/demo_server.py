"""`duetime demo --server`: a server in a separate process, webhooks to a receiver in this one, and a check.

The demo uses the server as users do: it creates intents over HTTP, in batches and one by one, receives
webhooks over HTTP, and shows the events of the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

import msgspec
from aiohttp import web

from duetime import Status
from duetime.cli.ui import output
from duetime.cli.ui.demo_report import Board, Figures, screen
from duetime.client.app.ids import Ids
from duetime.client.app.times import moment_ms
from duetime.client.http.client import Client
from duetime.client.http.request_types import NewIntent
from duetime.errors import BadConfig
from duetime.json_types import Json
from duetime.limits import DEMO_SERVER_PATIENCE_S, DEMO_START_S, DEMO_STOP_S, TIER_NAMES
from duetime.timefmt import moment_of
from duetime.wire.intent import Intent

# How each kind ends, and its share in percent.
ENDS = {
    "plain": Status.ACKED,
    "batched": Status.ACKED,
    "flaky": Status.ACKED,
    "patient": Status.ACKED,
    "twice": Status.ACKED,
    "revived": Status.ACKED,
    "doomed": Status.DEAD_LETTERED,
    "refused": Status.DEAD_LETTERED,
    "missed": Status.EXPIRED,
    "cancelled": Status.CANCELED,
}
SHARES = {"batched": 20, "flaky": 8, "patient": 2, "twice": 3, "revived": 2, "doomed": 3, "refused": 2,
          "missed": 2, "cancelled": 2}  # fmt: skip
KINDS = [kind for kind, share in SHARES.items() for _ in range(share)]
KINDS = ["plain"] * (100 - len(KINDS)) + KINDS
# The responses of the receiver to the first delivery and to the later ones.
ANSWERS = {
    "flaky": (503, 200), "patient": (429, 200), "revived": (410, 200), "doomed": (500, 500),
    "refused": (410, 410), "missed": (503, 503),
}  # fmt: skip
# The percentage of intents that are created one by one; the others are created in batches of this size.
SINGLE, TOGETHER = 5, 250


class ServerDemo(Board):
    """One run: compares the webhooks that arrived, and the server's data, with what was submitted."""

    ends = ENDS
    said = "none lost, none early, no delivery repeated, and the server stopped cleanly"

    def __init__(self, folder: Path, count: int, seconds: float) -> None:
        super().__init__()
        self.folder = folder
        self.count = count
        self.seconds = seconds
        self.run_id = Ids().new(self.clock.now_ms())
        self.kind_of: dict[str, str] = {}
        self.status_of: dict[str, Status] = {}
        self.arrived: Counter[str] = Counter()
        self._seen: set[tuple[str, int]] = set()
        self._ended: set[str] = set()
        self._all_ended = asyncio.Event()
        self._revivals: set[asyncio.Task[object]] = set()

    async def run(self, *, quiet: bool) -> Figures:
        async with (
            _serving(self.folder, self.problems) as url,
            _receiving(self.answer) as receiver,
            Client(url) as client,
        ):
            following = asyncio.create_task(self._follow(client))
            watch = contextlib.nullcontext() if quiet else screen(self)
            with watch:
                await self._submit_all(client, receiver)
                await self._until_all_ended()
            following.cancel()
            await asyncio.gather(following, *self._revivals, return_exceptions=True)
            found = [each async for each in client.every(tags={"demo": self.run_id})]
        return self.figures(found)

    # Submitting.

    async def _submit_all(self, client: Client, receiver: str) -> None:
        # The first is due after all are submitted, so that lateness is measured and not the submits.
        first_ms = self.clock.now_ms() + 1_000 + self.count // 2
        step_ms = self.seconds * 1000 / self.count
        news = [
            self.new_intent(number, round(first_ms + number * step_ms), receiver)
            for number in range(self.count)
        ]
        single = [new for number, new in enumerate(news) if number % 100 < SINGLE]
        many = [new for number, new in enumerate(news) if number % 100 >= SINGLE]
        await asyncio.gather(*(client.create(**new) for new in single))
        for start in range(0, len(many), TOGETHER):
            batch = await client.create_many(many[start : start + TOGETHER])
            self.problems += [f"refused: {each.error.message}" for each in batch.items if each.error]
        for new in news:
            kind = self.kind_of[new["intent_id"]]
            if kind == "cancelled":
                await client.cancel(new["intent_id"])
            elif kind == "twice":
                again = await client.create(**new)
                if again.intent_id != new["intent_id"]:
                    self.problems.append(f"{again.intent_id} was made by a key that was known")

    def new_intent(self, number: int, at_ms: int, receiver: str) -> NewIntent:
        tier = TIER_NAMES[(number + number // 100) % len(TIER_NAMES)]
        kind = KINDS[number * 37 % 100]
        id = f"{self.run_id}.{number}"
        self.tier_of[id], self.kind_of[id] = tier, kind
        # Intents that always fail have their own path, because a failing path is slowed down.
        path = f"{kind}/{number}" if kind in ("doomed", "missed") else kind
        new: NewIntent = {
            "intent_id": id,
            "execute_at": moment_of(at_ms),
            "precision_tier": tier,
            "callback": {"url": f"{receiver}/{path}", "batch": kind == "batched"},
            "payload": {"number": number},
            "redelivery": {"max_attempts": 3, "initial_delay_ms": 100, "jitter": False},
            "tags": {"demo": self.run_id},
        }
        if kind == "twice":
            new["idempotency_key"] = id
        elif kind == "missed":  # its first attempt fails, and the retry would be too late
            new["deadline"] = moment_of(at_ms + 1_000)
            new["redelivery"] = {"initial_delay_ms": 60_000}
        elif kind == "cancelled":
            new["execute_at"] = moment_of(at_ms + 3_600_000)
        return new

    # Receiving.

    def answer(self, kind: str, bodies: Iterable[Json]) -> int:
        """The response to a webhook. Each webhook is compared with what was submitted."""
        status = 200
        for body in bodies:
            id, delivery = body["intentId"], body["delivery"]
            late_ms = self.clock.now_ms() - moment_ms(body["executeAt"])
            self.arrived[id] += 1
            if late_ms < 0:
                self.problems.append(f"{id} came {-late_ms} ms early")
            if (id, delivery) in self._seen:
                self.problems.append(f"{id} came twice with delivery {delivery}")
            if kind == "cancelled" or self.kind_of.get(id, kind) != kind:
                self.problems.append(f"{id} came to {kind}")
            self._seen.add((id, delivery))
            if delivery == 1:
                self.late_ms[body["precisionTier"]].append(body["lateMs"])
            status = ANSWERS.get(kind, (200, 200))[delivery > 1]
        return status

    async def _follow(self, client: Client) -> None:
        async with contextlib.aclosing(client.events(reconnect_s=DEMO_SERVER_PATIENCE_S)) as events:
            async for event in events:
                if event.gap:  # events were dropped: read the state instead
                    for each in [each async for each in client.every(tags={"demo": self.run_id})]:
                        self._moved(client, each.intent_id, each.status)
                else:
                    self._moved(client, event.intent_id, event.status)

    def _moved(self, client: Client, id: str, new: Status) -> None:
        kind = self.kind_of.get(id)
        if kind is None:
            return
        self.moved(id, self.status_of.get(id), new)
        self.status_of[id] = new
        if new is Status.DEAD_LETTERED and kind == "revived":
            self._revivals.add(asyncio.create_task(_revive(client, id)))
        elif new.final:
            self._ended.add(id)
            if len(self._ended) == self.count:
                self._all_ended.set()

    async def _until_all_ended(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.seconds + DEMO_SERVER_PATIENCE_S):
                await self._all_ended.wait()

    # The result.

    def figures(self, found: list[Intent]) -> Figures:
        statuses = Counter(each.status for each in found)
        kinds = Counter(self.kind_of[each.intent_id] for each in found)
        missing = len(self.kind_of) - len(found)
        if missing:
            self.problems.append(f"{missing} intents are gone")
        for each in found:
            kind, arrived = self.kind_of[each.intent_id], self.arrived[each.intent_id]
            if each.status is not ENDS[kind]:
                self.problems.append(f"a {kind} one, {each.intent_id}, is {each.status}")
            elif arrived != each.delivery:
                self.problems.append(f"{each.intent_id} had {each.delivery} deliveries, {arrived} arrived")
        return Figures(
            submitted=len(self.kind_of),
            earlier=0,
            statuses={status.value: statuses[status] for status in Status},
            kinds={kind: kinds[kind] for kind in ENDS},
            deliveries=self.arrived.total(),
            tiers=[self.tier_figures(index) for index in range(len(TIER_NAMES))],
            problems=self.problems,
            accounted=not self.problems,
        )


async def _revive(client: Client, id: str) -> None:
    await client.revive(id)


@contextlib.asynccontextmanager
async def _receiving(answer: Callable[[str, list[Json]], int]) -> AsyncIterator[str]:
    """A receiver of webhooks on a free port, while the demo runs."""

    async def arrive(request: web.Request) -> web.Response:
        body = msgspec.json.decode(await request.read())
        status = answer(request.match_info["kind"], body if isinstance(body, list) else [body])
        return web.Response(status=status, headers={"retry-after": "1"} if status == 429 else None)

    application = web.Application()
    application.router.add_post("/{kind}", arrive)
    application.router.add_post("/{kind}/{number}", arrive)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def _serving(folder: Path, problems: list[str]) -> AsyncIterator[str]:
    """`duetime serve` on free ports, while the demo runs. It is stopped with SIGTERM, like a service."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "duetime", "serve", "--data", str(folder), "--host", "127.0.0.1",
        "--port", "0", "--grpc-port", "0", stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    words: list[str] = []
    try:
        async with asyncio.timeout(DEMO_START_S):
            url = await _listening(process, words)
        if url is None:
            for line in words:
                output.words(line)
            raise BadConfig("The server did not start.", hint="See its output above.")
        reading = asyncio.create_task(_listening(process, words, to_the_end=True))
        yield url
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEMO_STOP_S):
            code = await process.wait()
        await reading
        if code:
            problems.append(f"the server stopped with {code}: {words[-1:]}")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _listening(
    process: asyncio.subprocess.Process, words: list[str], *, to_the_end: bool = False
) -> str | None:
    """Read the server's output up to its address; or to the end, so that the pipe never blocks the server."""
    assert process.stderr is not None
    async for line in process.stderr:
        words.append(line.decode("utf-8", "replace").rstrip())
        found = re.search(r"listens on (\S+)", words[-1])
        if found and not to_the_end:
            return found[1]
    return None
