"""`duetime demo`: a few seconds of everything, with an account at the end.

Thousands of intents over all tiers: most succeed, some fail first, some fail for good, some are rejected,
cancelled or too late. The demo knows how each must end, and counts whether it did.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from duetime import App, Planned, Reject, Retry, Status, current
from duetime.cli import output
from duetime.client.times import moment_of
from duetime.clock import SystemClock
from duetime.limits import TIER_NAMES, TIER_WINDOW_MS
from duetime.protocol.command import Pause, Resume
from duetime.protocol.effect import Change
from duetime.protocol.intent import FINAL
from duetime.protocol.terms import Entity, Task
from duetime.protocol.view import View

ACCOUNTS = 5
CLOSED_QUEUE = "closed"
# How each kind ends, and how many of a hundred are of it.
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
# Intents handed in together: enough to share their syncs, few enough to keep the loop awake.
TOGETHER = 500
# A demo that has not ended this long after its last intent was due has failed.
PATIENCE_S = 30.0


def demo(
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Use this folder and keep it; else a temporary one.")
    ] = None,
    count: Annotated[int, typer.Option(min=100, max=200_000, help="How many intents.")] = 3_000,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="Spread over so many seconds.")] = 5.0,
    as_json: output.JsonFlag = False,
) -> None:
    """Watch an engine work: all tiers, retries, dead letters, an entity, deadlines; nothing gets lost."""
    logging.getLogger("duetime").setLevel(logging.CRITICAL)  # these failures are meant
    with contextlib.ExitStack() as stack:
        folder = data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="duetime-demo-")))
        figures = asyncio.run(Demo(str(folder), count, seconds).run(quiet=as_json))
    if as_json:
        output.json(figures)
    else:
        _show(figures)
        _show_next(data)
    if figures.problems:
        raise typer.Exit(1)


class TierFigures(Struct, rename="camel"):
    """How late one tier was, in milliseconds."""

    tier: str
    n: int
    p50_ms: int
    p99_ms: int
    max_ms: int
    bound_ms: int
    ok: bool


class Figures(Struct, rename="camel"):
    """What the demo came to."""

    submitted: int
    earlier: int
    """Unfinished intents found in the folder from a demo that was stopped."""
    statuses: dict[str, int]
    kinds: dict[str, int]
    deliveries: int
    tiers: list[TierFigures]
    problems: list[str]
    accounted: bool


class Demo:
    """One run: what was asked for, what happened, and whether the two agree."""

    def __init__(self, folder: str, count: int, seconds: float) -> None:
        self.app = App(folder)
        self.clock = SystemClock()
        self.count = count
        self.seconds = seconds
        self.submitted: set[str] = set()
        self.late_ms: dict[str, list[int]] = {tier: [] for tier in TIER_NAMES}
        self.moves: Counter[tuple[str, Status]] = Counter()
        """By tier and status: how many intents are there now."""
        self.tier_of: dict[str, str] = {}
        self.problems: list[str] = []
        self.deliveries = 0
        self._deposits: Counter[str] = Counter()
        self._last: dict[str, int] = {}
        self._ran_once: set[str] = set()
        self._register()

    # What is done.

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
                demo._deposited(self.id, number)
                return number

        self.tasks: dict[str, Planned[[str, int], Any]] = {
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

    def _deposited(self, account: str, number: int) -> None:
        self.deliveries += 1
        last = self._last.get(account, 0)
        if number != last + 1 and account.startswith(self.run_id):
            self.problems.append(f"{account} got message {number} after {last}")
        self._last[account] = number

    def _changed(self, change: Change) -> None:
        tier = self.tier_of.get(change.id)
        if tier is not None:
            self.moves[tier, change.new] += 1
            if change.old is not None:
                self.moves[tier, change.old] -= 1

    # The run.

    async def run(self, *, quiet: bool) -> Figures:
        async with self.app as app:
            self.run_id = app.new_id(self.clock.now_ms())
            self.earlier = _live(await app.overview())
            if self.earlier and not quiet:
                output.words(f"{self.earlier} intents of an earlier demo were not finished: they go on now.")
            await app.ask(Pause(f"task:{CLOSED_QUEUE}"))
            watch = contextlib.nullcontext() if quiet else _screen(self)
            with watch:
                await self._submit_all()
                await self._all_ended()
            await app.ask(Resume(f"task:{CLOSED_QUEUE}"))
            views = await app.find(limit=1 << 40)
        return self._figures(views)

    async def _submit_all(self) -> None:
        # The first is due when all are handed in: what is measured is punctuality, not submitting.
        first_ms = self.clock.now_ms() + 300 + self.count // 4
        step_ms = self.seconds * 1000 / self.count
        for start in range(0, self.count, TOGETHER):
            numbers = range(start, min(start + TOGETHER, self.count))
            await asyncio.gather(*(self._submit(n, first_ms + round(n * step_ms)) for n in numbers))

    async def _submit(self, number: int, at_ms: int) -> None:
        # Well mixed, and with a few hundred every kind meets every tier.
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
        times: dict[str, Any] = {"at": moment_of(at_ms)}
        if kind == "missed":
            times["deadline"] = moment_of(at_ms + 200)
        elif kind == "cancelled":
            times = {"delay": "1h"}
        handle = await self.tasks[kind].options(id=id, tier=tier, **times).schedule(tier, number)
        if kind == "cancelled":
            await handle.cancel()

    async def _all_ended(self) -> None:
        until_ms = self.clock.now_ms() + 1000 * (self.seconds + PATIENCE_S)
        while _live(await self.app.overview()) and self.clock.now_ms() < until_ms:
            await asyncio.sleep(0.05)

    # The account.

    def _figures(self, views: list[View]) -> Figures:
        mine = [view for view in views if view.id in self.submitted]
        statuses = Counter(view.status.name for view in mine)
        kinds = Counter(self._kind(view) for view in mine)
        missing = len(self.submitted) - len(mine)
        if missing:
            self.problems.append(f"{missing} intents are gone")
        for view in views:
            if view.status not in FINAL:
                self.problems.append(f"{view.id} is still {view.status.name}")
        for view in mine:
            if view.status in FINAL and view.status is not ENDS[self._kind(view)]:
                self.problems.append(f"a {self._kind(view)} one, {view.id}, ended as {view.status.name}")
        ended = sum(statuses[status.name] for status in FINAL)
        return Figures(
            submitted=len(self.submitted),
            earlier=self.earlier,
            statuses={status.name: statuses[status.name] for status in Status},
            kinds={kind: kinds[kind] for kind in ENDS},
            deliveries=self.deliveries,
            tiers=[self.tier_figures(index) for index in range(len(TIER_NAMES))],
            problems=self.problems,
            accounted=ended == len(self.submitted) and not self.problems,
        )

    def _kind(self, view: View) -> str:
        target = view.terms.target
        if isinstance(target, Entity):
            return "account"
        assert isinstance(target, Task)
        return target.name

    def tier_figures(self, index: int) -> TierFigures:
        late_ms = sorted(self.late_ms[TIER_NAMES[index]])
        n, bound_ms = len(late_ms), TIER_WINDOW_MS[index]
        p50, p99, most = (late_ms[min(n - 1, n * part // 100)] if n else 0 for part in (50, 99, 100))
        return TierFigures(TIER_NAMES[index], n, p50, p99, most, bound_ms, p99 <= bound_ms)


def _live(overview: Any) -> int:
    return sum(number for name, number in overview.counts.items() if Status[name] not in FINAL)


# What is seen while it runs.


@contextlib.contextmanager
def _screen(demo: Demo) -> Iterator[None]:
    """A table that moves on a terminal, a line a second elsewhere."""
    loop = asyncio.get_running_loop()
    if sys.stderr.isatty():
        with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
            task = loop.create_task(_refresh(0.1, lambda: live.update(_picture(demo), refresh=True)))
            try:
                yield
            finally:
                task.cancel()
        return
    start_ms = demo.clock.now_ms()
    task = loop.create_task(_refresh(1.0, lambda: output.words(_line(demo, start_ms))))
    try:
        yield
    finally:
        task.cancel()
        output.words(_line(demo, start_ms))


async def _refresh(every_s: float, show: Any) -> None:
    while True:
        show()
        await asyncio.sleep(every_s)


def _by_status(demo: Demo, status: Status) -> int:
    return sum(demo.moves[tier, status] for tier in TIER_NAMES)


def _line(demo: Demo, start_ms: int) -> str:
    parts = [f"{status.name.lower()} {_by_status(demo, status)}" for status in Status]
    return f"{(demo.clock.now_ms() - start_ms) / 1000:5.1f} s  {', '.join(parts)}"


def _picture(demo: Demo) -> Group:
    grid = Table(title="lateness in ms", title_justify="left", box=None, pad_edge=False)
    for column in ("tier", "pending", "running", "done", "p50", "p99", "bound"):
        grid.add_column(column, justify="left" if column == "tier" else "right")
    for index, tier in enumerate(TIER_NAMES):
        pending = sum(demo.moves[tier, s] for s in (Status.SCHEDULED, Status.DUE, Status.BLOCKED))
        done = sum(demo.moves[tier, status] for status in FINAL)
        figures = demo.tier_figures(index)
        cells = (pending, demo.moves[tier, Status.DISPATCHING], done, figures.p50_ms, figures.p99_ms)
        grid.add_row(tier, *(str(cell) for cell in cells), str(figures.bound_ms))
    counts = "  ".join(f"{status.name} {_by_status(demo, status)}" for status in Status)
    return Group(Text(counts), Text(), grid)


# What is seen at the end.


def _show(figures: Figures) -> None:
    output.table(
        ("tier", "n", "p50 ms", "p99 ms", "max ms", "bound ms", "ok"),
        [
            (t.tier, t.n, t.p50_ms, t.p99_ms, t.max_ms, t.bound_ms, "yes" if t.ok else "late")
            for t in figures.tiers
        ],
        right=("n", "p50 ms", "p99 ms", "max ms", "bound ms"),
    )
    output.text("")
    output.table(
        ("kind", "intents", "must end as"),
        [(kind, number, ENDS[kind].name) for kind, number in figures.kinds.items()],
        right=("intents",),
    )
    output.text("")
    ends = [f"{figures.statuses[status.name]} {status.name}" for status in sorted(FINAL)]
    output.text(f"{figures.submitted} submitted = {' + '.join(ends)}, in {figures.deliveries} deliveries")
    if figures.accounted:
        output.words("All accounted for: none lost, none early, none twice, every entity in order.")
    for problem in figures.problems[:20]:
        output.words(f"error: {problem}", style="red")


def _show_next(data: Path | None) -> None:
    folder = data or "demo-data"
    command = sys.argv[0] if sys.argv[0].endswith("duetime") else "duetime"
    if Path(command).is_absolute() and Path(command).is_relative_to(Path.cwd()):
        command = str(Path(command).relative_to(Path.cwd()))
    output.words("\nWhat to try next:")
    if data is None:
        output.words(
            f"  {command} demo --data {folder}                kept; stop it midway and start it again"
        )
    output.words(f"  {command} log segments --data {folder}        what was written")
    output.words(f"  {command} log dump --data {folder} --limit 5  record by record")
    output.words(f"  {command} log verify --data {folder}          check every byte of it")
