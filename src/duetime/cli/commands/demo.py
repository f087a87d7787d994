"""`duetime demo`: shows all features in a few seconds, and checks the result.

Thousands of intents in all tiers: most succeed; some are retried, dead-lettered, rejected, cancelled or
expire. The demo knows how each must end and checks that it did.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from duetime import App, Planned, Reject, Retry, Status, current
from duetime.cli.ui import output
from duetime.cli.ui.demo_report import Board, Figures, screen, show
from duetime.errors import BadConfig
from duetime.limits import DEMO_PATIENCE_S, TIER_NAMES
from duetime.protocol.command import Pause, Resume
from duetime.timefmt import moment_of
from duetime.wire.event import Transition
from duetime.wire.intent import Intent

if TYPE_CHECKING:
    from duetime.cli.commands.demo_server import ServerDemo
    from duetime.client.app.options import OptionFields
    from duetime.protocol.view import Overview

ACCOUNTS = 5
CLOSED_QUEUE = "closed"
# How each kind ends, and its share in percent.
ENDS = {
    "plain": Status.ACKED,
    "flaky": Status.ACKED,
    "account": Status.ACKED,
    "once": Status.ACKED,
    "doomed": Status.DEAD_LETTERED,
    "refused": Status.DEAD_LETTERED,
    "missed": Status.EXPIRED,
    "cancelled": Status.CANCELED,
}
SHARES = {"flaky": 8, "account": 6, "once": 4, "doomed": 3, "refused": 2, "missed": 2, "cancelled": 2}
KINDS = [kind for kind, share in SHARES.items() for _ in range(share)]
KINDS = ["plain"] * (100 - len(KINDS)) + KINDS
# Intents submitted together: enough to share a sync, few enough not to block the event loop.
TOGETHER = 500


def demo(
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Data folder to use and keep (default: a temporary one)."),
    ] = None,
    server: Annotated[
        bool,
        typer.Option("--server", help="Run a server with webhooks over HTTP instead of an embedded engine."),
    ] = False,
    count: Annotated[int, typer.Option(min=100, max=200_000, help="Number of intents.")] = 3_000,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=600, help="Spread the intents over this many seconds.")
    ] = 5.0,
    as_json: output.JsonFlag = False,
) -> None:
    """Run a demo with all tiers, retries, dead letters, entities and deadlines, and check the result.

    With --server, the demo starts a server process, uses it over HTTP, and receives its webhooks.
    """
    with contextlib.ExitStack() as stack:
        logger = logging.getLogger("duetime")
        stack.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL)  # these failures are intended
        folder = data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="duetime-demo-")))
        run = _over_http(folder, count, seconds) if server else Demo(str(folder), count, seconds)
        figures = asyncio.run(run.run(quiet=as_json))
    if as_json:
        output.json(figures)
    else:
        show(figures, run.ends, run.said)
        _show_next(data, server)
    if figures.problems:
        raise typer.Exit(1)


def _over_http(folder: Path, count: int, seconds: float) -> ServerDemo:
    try:
        from duetime.cli.commands.demo_server import ServerDemo
    except ModuleNotFoundError as error:
        raise BadConfig(
            f"The server needs the package {error.name!r}.", hint="Install it: pip install 'duetime[server]'."
        ) from error
    return ServerDemo(folder, count, seconds)


class Demo(Board):
    """One run: compares the results with what was submitted."""

    ends = ENDS
    said = "none lost, none early, none repeated, all entities in order"

    def __init__(self, folder: str, count: int, seconds: float) -> None:
        super().__init__()
        self.app = App(folder)
        self.count = count
        self.seconds = seconds
        self.submitted: set[str] = set()
        self.deliveries = 0
        self._deposits: Counter[str] = Counter()
        self._last: dict[str, int] = {}
        self._ran_once: set[str] = set()
        self._register()

    # The functions.

    def _register(self) -> None:
        app = self.app
        soon = Retry(max_attempts=3, initial_delay="100ms", jitter=False)
        demo = self

        async def plain(tier: str, number: int) -> int:
            demo._started(tier)
            return number

        async def flaky(tier: str, number: int) -> int:
            demo._started(tier)
            if current().attempt <= 1 + number % 2:
                raise ConnectionError("the other side does not answer")
            return current().attempt

        async def once(tier: str, number: int) -> int:
            demo._started(tier)
            if current().intent_id in demo._ran_once:
                demo.problems.append(f"{current().intent_id} ran twice, but at most once was promised")
            demo._ran_once.add(current().intent_id)
            return number

        async def doomed(tier: str, number: int) -> None:
            demo._started(tier)
            raise TimeoutError("the other side never answers")

        async def refused(tier: str, number: int) -> None:
            demo._started(tier)
            raise Reject("the card is expired")

        async def unwanted(tier: str, number: int) -> None:
            demo.problems.append(f"{current().intent_id} ran, but it was cancelled or too late")

        class Account:
            def __init__(self, id: str) -> None:
                self.id = id

            async def deposit(self, number: int) -> int:
                demo.deposited(self.id, number)
                return number

        self.tasks: dict[str, Planned[[str, int], object]] = {
            "plain": app.task(name="plain")(plain),
            "flaky": app.task(name="flaky", retry=soon)(flaky),
            "once": app.task(name="once", guarantee="at-most-once")(once),
            "doomed": app.task(name="doomed", retry=soon)(doomed),
            "refused": app.task(name="refused")(refused),
            "missed": app.task(name="missed", queue=CLOSED_QUEUE)(unwanted),
            "cancelled": app.task(name="cancelled")(unwanted),
        }
        self.accounts = app.entity(Account)
        app.observe(self._changed)

    def _started(self, tier: str) -> None:
        self.deliveries += 1
        context = current()
        late_ms = self.clock.now_ms() - context.execute_at_ms
        if late_ms < 0:
            self.problems.append(f"{context.intent_id} was {-late_ms} ms early")
        if context.delivery == 1 and context.intent_id in self.submitted:
            self.late_ms[tier].append(late_ms)

    def deposited(self, account: str, number: int) -> None:
        self.deliveries += 1
        last = self._last.get(account, 0)
        if number != last + 1 and account.startswith(self.run_id):
            self.problems.append(f"{account} got message {number} after {last}")
        self._last[account] = number

    def _changed(self, change: Transition) -> None:
        self.moved(change.intent_id, change.previous_status, change.status)

    # The run.

    async def run(self, *, quiet: bool) -> Figures:
        async with self.app as app:
            self.run_id = app.new_id(self.clock.now_ms())
            self.earlier = _live(await app.overview())
            if self.earlier and not quiet:
                output.words(f"{self.earlier} unfinished intents of an earlier demo continue now.")
            await app.ask(Pause(f"task:{CLOSED_QUEUE}"))
            watch = contextlib.nullcontext() if quiet else screen(self)
            with watch:
                await self.submit_all()
                await self._all_ended()
            await app.ask(Resume(f"task:{CLOSED_QUEUE}"))
            views = await app.find(limit=1 << 40)
        return self.figures(views)

    async def submit_all(self) -> None:
        # The first is due after all are submitted, so that lateness is measured and not the submits.
        first_ms = self.clock.now_ms() + 300 + self.count // 4
        step_ms = self.seconds * 1000 / self.count
        for start in range(0, self.count, TOGETHER):
            numbers = range(start, min(start + TOGETHER, self.count))
            await asyncio.gather(*(self._submit(n, first_ms + round(n * step_ms)) for n in numbers))

    async def _submit(self, number: int, at_ms: int) -> None:
        # Kinds and tiers are mixed: with a few hundred intents, every combination occurs.
        tier = TIER_NAMES[(number + number // 100) % len(TIER_NAMES)]
        kind = KINDS[number * 37 % 100]
        id = f"{self.run_id}.{number}"
        self.submitted.add(id)
        self.tier_of[id] = tier
        if kind == "account":
            account = f"{self.run_id}.{number // 10 % ACCOUNTS}"
            self._deposits[account] += 1
            planned = self.accounts(account).message("deposit", id=id, tier=tier)
            await planned.schedule(self._deposits[account])
            return
        options: OptionFields = {"id": id, "tier": tier}
        if kind == "cancelled":
            options["delay"] = "1h"
        else:
            options["at"] = moment_of(at_ms)
        if kind == "missed":
            options["deadline"] = moment_of(at_ms + 200)
        handle = await self.tasks[kind].options(**options).schedule(tier, number)
        if kind == "cancelled":
            await handle.cancel()

    async def _all_ended(self) -> None:
        until_ms = self.clock.now_ms() + 1000 * (self.seconds + DEMO_PATIENCE_S)
        while _live(await self.app.overview()) and self.clock.now_ms() < until_ms:
            await asyncio.sleep(0.05)

    # The result.

    def figures(self, intents: list[Intent]) -> Figures:
        mine = [intent for intent in intents if intent.intent_id in self.submitted]
        statuses = Counter(intent.status.value for intent in mine)
        kinds = Counter(self._kind(intent) for intent in mine)
        missing = len(self.submitted) - len(mine)
        if missing:
            self.problems.append(f"{missing} intents are gone")
        for intent in intents:
            if not intent.status.final:
                self.problems.append(f"{intent.intent_id} is still {intent.status}")
        for intent in mine:
            kind = self._kind(intent)
            if intent.status.final and intent.status is not ENDS[kind]:
                self.problems.append(f"a {kind} one, {intent.intent_id}, ended as {intent.status}")
        ended = sum(statuses[status] for status in Status if status.final)
        return Figures(
            submitted=len(self.submitted),
            earlier=self.earlier,
            statuses={status.value: statuses[status] for status in Status},
            kinds={kind: kinds[kind] for kind in ENDS},
            deliveries=self.deliveries,
            tiers=[self.tier_figures(index) for index in range(len(TIER_NAMES))],
            problems=self.problems,
            accounted=ended == len(self.submitted) and not self.problems,
        )

    def _kind(self, intent: Intent) -> str:
        if intent.entity is not None:
            return "account"
        assert intent.task is not None
        return intent.task.name


def _live(overview: Overview) -> int:
    return sum(number for name, number in overview.counts.items() if not Status[name].final)


def _show_next(data: Path | None, server: bool) -> None:
    command, folder = output.command(), data or "demo-data"
    lines = {
        f"log segments --data {folder}": "list the log segments",
        f"log dump --data {folder} --limit 5": "print records",
        f"log verify --data {folder}": "verify every byte",
    }
    if data is None and server:
        lines = {f"demo --server --data {folder}": "run again and keep the folder", **lines}
    elif data is None:
        lines = {f"demo --data {folder}": "keep the folder; stop it midway and start it again", **lines}
    if server:
        lines[f"serve --data {folder}"] = "inspect it over HTTP and with the other commands"
    output.words("")
    output.words("Next steps:")
    for line, what in lines.items():
        output.words(f"  {command} {line:<40} {what}")
