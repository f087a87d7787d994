"""One log, three lives: nothing that a store does (cold intents, checkpoints, restarts) may be seen.

The first kernel never stops and has everything in memory. The second is restarted from checkpoints of the
same store. The third runs over SQLite, with checkpoints that go on between the records, abandoned ones,
windows that move, and restarts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings

from duetime.kernel import invariants
from duetime.kernel.kernel import Applied, Kernel
from duetime.protocol.record import Record
from duetime.store.memory import MemoryStore
from duetime.store.sqlite.store import SqliteStore
from duetime.store.store import Job, Store
from duetime.testing.sim.replica import check_same, plain
from tests.property.moves import Move, command_of, moves, step_of
from tests.unit.kernel.bench import T0


class Life:
    """A kernel over a store that is saved and reopened."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.kernel = Kernel(store)
        self.tail: list[Record] = []
        """Records since the last whole checkpoint, and perhaps some more: what a log would have."""
        self._jobs: Iterator[Job] | None = None

    def apply(self, record: Record) -> Applied:
        self.tail.append(record)
        return self.kernel.apply(record)

    def begin_checkpoint(self) -> None:
        if self._jobs is None:
            self._jobs = self.store.checkpoint(self.kernel.checkpoint(1))
            self.step()

    def step(self) -> None:
        """One step of the checkpoint under way."""
        if self._jobs is not None:
            job = next(self._jobs, None)
            if job is None:
                self._jobs = None
            else:
                job()

    def finish_checkpoint(self) -> None:
        while self._jobs is not None:
            self.step()

    def abandon_checkpoint(self) -> None:
        if self._jobs is not None:
            self._jobs.close()  # type: ignore[attr-defined]
            self._jobs = None

    def restart(self) -> None:
        """Stop without a word, and come back from what was saved and from the tail."""
        self.abandon_checkpoint()
        self.store = self.reopened()
        self.kernel = Kernel(self.store)
        saved = self.store.load()
        if saved is not None:
            self.kernel.thaw(saved)
            self.tail = [record for record in self.tail if record.seq > saved.records]
        for record in self.tail:
            self.kernel.apply(record)

    def reopened(self) -> Store:
        assert isinstance(self.store, MemoryStore)
        return self.store.reopen()


class SqliteLife(Life):
    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(SqliteStore(path))

    def reopened(self) -> Store:
        self.store.close()
        return SqliteStore(self.path)


def disturb(life: Life, move: Move, now_ms: int) -> None:
    """What an engine does between two records, by the move's own numbers."""
    kind, a, b, c = move
    life.step()
    what = (3 * kind + 5 * a + 7 * b + 11 * c) % 19
    if what in (0, 1, 2):
        life.begin_checkpoint()
    elif what == 3:
        life.finish_checkpoint()
    elif what == 4:
        life.restart()
    elif what in (5, 6):
        life.kernel.state.timers.extend(now_ms + (60_000, 7_200_000)[what - 5], 1 + a)
    elif what == 7:
        life.abandon_checkpoint()
        life.begin_checkpoint()
        life.finish_checkpoint()
        life.restart()
    elif what == 8:
        life.abandon_checkpoint()


def run(all_moves: list[Move], path: Path) -> None:
    first = Life(MemoryStore())
    second = Life(MemoryStore(durable=True))
    third = SqliteLife(path / "store.db")
    now_ms = T0
    try:
        for number, move in enumerate(all_moves, 1):
            now_ms += step_of(move)
            record = Record(number, now_ms, command_of(move, first.kernel.state, now_ms))
            expected = first.apply(record)
            for life in (second, third):
                disturb(life, move, now_ms)
                found = life.apply(record)
                assert found.effects == expected.effects, record
                assert found.changes == expected.changes, record
                assert plain(found.answer) == plain(expected.answer), record
            invariants.check(first.kernel.state)
            invariants.check(third.kernel.state)
        for life in (second, third):
            check_same(life.kernel.state, first.kernel.state)
            life.restart()
            check_same(life.kernel.state, first.kernel.state)
    finally:
        third.store.close()


def dice(seed: int, count: int) -> list[Move]:
    """Moves without end, where hypothesis would rather have few."""
    random = Random(seed)
    return [
        (random.randrange(32), random.randrange(10), random.randrange(10), random.randrange(10))
        for _ in range(count)
    ]


@settings(max_examples=100)
@given(moves)
def test_no_kernel_can_tell_its_store(all_moves):
    with tempfile.TemporaryDirectory() as folder:
        run(all_moves, Path(folder))


@pytest.mark.parametrize("seed", range(12))
def test_no_kernel_can_tell_its_store_in_a_long_life(seed, tmp_path):
    run(dice(seed, 300), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 600))
def test_no_kernel_can_tell_its_store_in_many_lives(seed, tmp_path):
    run(dice(seed, 400), tmp_path)


@pytest.mark.parametrize("seed", range(20, 32))
def test_a_thawed_kernel_continues_like_the_original(seed):
    """One kernel lives on, its copy comes out of a checkpoint; the next 200 records are the same to both."""
    store = MemoryStore(durable=True)
    living = Kernel(store)
    now_ms = T0
    all_moves = dice(seed, 400)
    copy = living
    for number, move in enumerate(all_moves, 1):
        now_ms += step_of(move)
        record = Record(number, now_ms, command_of(move, living.state, now_ms))
        expected = living.apply(record)
        if number > 200:
            found = copy.apply(record)
            assert (found.effects, found.changes) == (expected.effects, expected.changes), record
            assert plain(found.answer) == plain(expected.answer), record
        elif number == 200:
            for job in store.checkpoint(living.checkpoint(1)):
                job()
            again = store.reopen()
            saved = again.load()
            assert saved is not None
            copy = Kernel(again)
            copy.thaw(saved)
    check_same(copy.state, living.state)


@pytest.mark.parametrize("seed", range(40, 46))
def test_observers_do_not_change_decisions(seed):
    watched, unwatched = Kernel(MemoryStore()), Kernel(MemoryStore())
    now_ms = T0
    for number, move in enumerate(dice(seed, 400), 1):
        now_ms += step_of(move)
        record = Record(number, now_ms, command_of(move, watched.state, now_ms))
        expected, found = watched.apply(record), unwatched.apply(record, watched=False)
        assert found.effects == expected.effects, record
        assert plain(found.answer) == plain(expected.answer), record
        assert found.changes == []
    check_same(unwatched.state, watched.state)
