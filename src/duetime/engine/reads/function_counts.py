"""Deliveries by queue and function: how many came back with which outcome, and how long they took.

The names come from callers, so their number is bounded: the first ones are counted apart, the rest together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from duetime.engine.reads.histogram import Histogram
from duetime.limits import FUNCTION_LABELS_MAX
from duetime.protocol.outcome import Done, Expired, Failed, Lost, Outcome, Rejected, Returned, Snoozed
from duetime.protocol.terms import Entity, Target, Task

FUNCTION_S = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 3_600.0)
OUTCOMES = ("done", "failed", "snoozed", "rejected", "lost", "expired", "returned")
OUTCOME_NUMBER: dict[type[Outcome], int] = {
    Done: 0, Failed: 1, Snoozed: 2, Rejected: 3, Lost: 4, Expired: 5, Returned: 6,
}  # fmt: skip
assert set(OUTCOME_NUMBER) == set(get_args(Outcome)), "each outcome is counted"

Labels = tuple[str, str]
"""The queue and the function."""
OTHER: Labels = ("other", "other")


class FunctionCount:
    """One function."""

    __slots__ = ("labels", "outcomes", "running", "seconds")

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.outcomes = [0] * len(OUTCOMES)
        self.seconds = Histogram(FUNCTION_S)
        self.running = 0
        """Only counted by a worker: a server has it by queue."""


class FunctionCounts:
    """All functions."""

    def __init__(self) -> None:
        self._rows: dict[Labels, FunctionCount] = {}

    def of(self, target: Target) -> FunctionCount | None:
        """The row of a target's function; None if the target is not a function."""
        if type(target) is Task:
            labels = (target.queue, target.name)
        elif type(target) is Entity:
            labels = ("", f"{target.kind}.{target.message}")
        else:
            return None
        row = self._rows.get(labels)
        if row is None:
            if len(self._rows) >= FUNCTION_LABELS_MAX:
                labels = OTHER
            row = self._rows.setdefault(labels, FunctionCount(labels))
        return row

    def rows(self) -> list[FunctionCount]:
        """A copy: it may be read in another thread."""
        return list(self._rows.values())

    def ended(self) -> Iterator[tuple[tuple[str, ...], int]]:
        """The number of outcomes, by queue, function and outcome."""
        for row in self.rows():
            for outcome, count in zip(OUTCOMES, row.outcomes, strict=True):
                if count:
                    yield (*row.labels, outcome), count
