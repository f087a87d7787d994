"""The law of fair shares, as a user would state it: however many intents another key has, it can start only
so often before mine.

It does not use virtual times. It counts, for each key that waits without limits of its own, how often
each other key of the same track started since; more than the weights allow is a broken promise.
"""

from __future__ import annotations

from collections.abc import Iterable

from duetime.testing.sim.observed import Seen

TrackKey = tuple[str, int]
"""A lane and a tier; -1 where all tiers of a lane share one track."""


class Book:
    """The keys that wait in one track."""

    def __init__(self) -> None:
        self.waits: dict[str, set[str]] = {}
        self.weights: dict[str, int] = {}
        self.passed: dict[str, dict[str, int]] = {}
        """By the waiting key: how often each other key started in the meantime."""

    def come(self, seen: Seen) -> None:
        if not seen.limits:
            self.weights[seen.share] = seen.weight
            self.waits.setdefault(seen.share, set()).add(seen.id)
            self.passed.setdefault(seen.share, {})

    def go(self, seen: Seen, *, started: bool) -> None:
        waits = self.waits.get(seen.share, set())
        waits.discard(seen.id)
        if started:
            self._started(seen)
        if not waits:
            self.waits.pop(seen.share, None)
            self.passed.pop(seen.share, None)

    def _started(self, seen: Seen) -> None:
        for key, passed in self.passed.items():
            if key == seen.share:
                passed.clear()
                continue
            times = passed[seen.share] = passed.get(seen.share, 0) + 1
            most = seen.weight // self.weights[key] + 1
            assert times <= most, (
                f"{seen.share!r} (weight {seen.weight}) started {times} times in {seen.lane!r}"
                f" while {key!r} (weight {self.weights[key]}) waited: {seen.id!r} is one too many"
            )


class FairnessLaw:
    """The books of all tracks."""

    def __init__(self) -> None:
        self._pushed: tuple[str, ...] = ()
        self._books: dict[TrackKey, Book] = {}

    def configured(self, pushed: tuple[str, ...], due: Iterable[Seen]) -> None:
        """Lanes may be handed out in another way from now on: then all keys start over."""
        if pushed != self._pushed:
            self._pushed, self._books = pushed, {}
            for seen in due:
                self.come(seen)

    def come(self, seen: Seen) -> None:
        """It waits in its lane from now on."""
        if not seen.serial:
            self._book(seen).come(seen)

    def go(self, seen: Seen, *, started: bool) -> None:
        """It no longer waits."""
        if not seen.serial:
            self._book(seen).go(seen, started=started)

    def _book(self, seen: Seen) -> Book:
        kind = seen.lane.partition(":")[0]
        return self._books.setdefault((seen.lane, seen.tier if kind in self._pushed else -1), Book())
