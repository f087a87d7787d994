"""Shared by the demos: the states of the intents, the lateness of each tier, and their output."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from duetime import Status
from duetime.cli.ui import output
from duetime.clock import SystemClock
from duetime.limits import TIER_NAMES, TIER_WINDOW_MS


class TierFigures(Struct, rename="camel"):
    """The lateness of one tier, in milliseconds."""

    tier: str
    n: int
    p50_ms: int
    p99_ms: int
    max_ms: int
    bound_ms: int
    ok: bool


class Figures(Struct, rename="camel"):
    """The result of the demo."""

    submitted: int
    earlier: int
    """Unfinished intents found in the folder from a demo that was stopped."""
    statuses: dict[str, int]
    kinds: dict[str, int]
    deliveries: int
    tiers: list[TierFigures]
    problems: list[str]
    accounted: bool


class Board:
    """The states of a demo's intents by tier, and their lateness."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.late_ms: dict[str, list[int]] = {tier: [] for tier in TIER_NAMES}
        self.moves: Counter[tuple[str, Status]] = Counter()
        """The current number of intents by tier and status."""
        self.tier_of: dict[str, str] = {}
        self.problems: list[str] = []

    def moved(self, id: str, old: Status | None, new: Status) -> None:
        tier = self.tier_of.get(id)
        if tier is not None:
            self.moves[tier, new] += 1
            if old is not None:
                self.moves[tier, old] -= 1

    def tier_figures(self, index: int) -> TierFigures:
        late_ms = sorted(self.late_ms[TIER_NAMES[index]])
        n, bound_ms = len(late_ms), TIER_WINDOW_MS[index]
        p50, p99, most = (late_ms[min(n - 1, n * part // 100)] if n else 0 for part in (50, 99, 100))
        return TierFigures(TIER_NAMES[index], n, p50, p99, most, bound_ms, p99 <= bound_ms)


# Output while it runs.


@contextlib.contextmanager
def screen(board: Board) -> Iterator[None]:
    """A live table on a terminal; otherwise one line per second."""
    loop = asyncio.get_running_loop()
    if sys.stderr.isatty():
        with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
            task = loop.create_task(_refresh(0.1, lambda: live.update(_picture(board), refresh=True)))
            try:
                yield
            finally:
                task.cancel()
        return
    start_ms = board.clock.now_ms()
    task = loop.create_task(_refresh(1.0, lambda: output.words(_line(board, start_ms))))
    try:
        yield
    finally:
        task.cancel()
        output.words(_line(board, start_ms))


async def _refresh(every_s: float, show: Callable[[], object]) -> None:
    while True:
        show()
        await asyncio.sleep(every_s)


def _by_status(board: Board, status: Status) -> int:
    return sum(board.moves[tier, status] for tier in TIER_NAMES)


def _line(board: Board, start_ms: int) -> str:
    parts = [f"{status.name.lower()} {_by_status(board, status)}" for status in Status]
    return f"{(board.clock.now_ms() - start_ms) / 1000:5.1f} s  {', '.join(parts)}"


def _picture(board: Board) -> Group:
    grid = Table(title="lateness in ms", title_justify="left", box=None, pad_edge=False)
    for column in ("tier", "pending", "running", "done", "p50", "p99", "bound"):
        grid.add_column(column, justify="left" if column == "tier" else "right")
    for index, tier in enumerate(TIER_NAMES):
        pending = sum(board.moves[tier, s] for s in (Status.SCHEDULED, Status.DUE, Status.BLOCKED))
        done = sum(board.moves[tier, status] for status in Status if status.final)
        figures = board.tier_figures(index)
        cells = (pending, board.moves[tier, Status.DISPATCHING], done, figures.p50_ms, figures.p99_ms)
        grid.add_row(tier, *(str(cell) for cell in cells), str(figures.bound_ms))
    counts = "  ".join(f"{status.name} {_by_status(board, status)}" for status in Status)
    return Group(Text(counts), Text(), grid)


# Output at the end.


def show(figures: Figures, ends: Mapping[str, Status], said: str) -> None:
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
        [(kind, number, ends[kind].name) for kind, number in figures.kinds.items()],
        right=("intents",),
    )
    output.text("")
    sums = [f"{figures.statuses[status.name]} {status.name}" for status in Status if status.final]
    output.text(f"{figures.submitted} submitted = {' + '.join(sums)}, in {figures.deliveries} deliveries")
    if figures.accounted:
        output.words(f"All intents are accounted for: {said}.")
    for problem in figures.problems[:20]:
        output.words(f"error: {problem}", style="red")
