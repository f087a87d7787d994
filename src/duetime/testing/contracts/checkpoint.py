"""The store's contract for checkpoints: a snapshot of one moment, complete or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from duetime.protocol.intent import ACKED, DISPATCHING, DUE, SCHEDULED
from duetime.store.store import SEQ_MAX, Job, Store
from duetime.testing.contracts.store_tools import NEVER, change, end, got, ids, make, moment, put, save, text

OpenStore = Callable[[], Store]

# Enough for several steps, whatever a store writes in one.
_MANY = 1_300


class CheckpointContract:
    """Two fixtures based on `open_store`, and the tests of checkpoints."""

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Iterator[Store]:
        store = open_store()
        yield store
        store.close()

    @pytest.fixture
    def reopen(self, open_store: OpenStore, store: Store) -> Iterator[Callable[[], Store]]:
        """Close the current handle and open the storage again."""
        handles = [store]

        def again() -> Store:
            handles[-1].close()
            handles.append(open_store())
            return handles[-1]

        yield again
        handles[-1].close()

    def test_a_checkpoint_comes_back_as_it_was(self, store: Store, reopen: Callable[[], Store]) -> None:
        put(store, make(1, 100, key="k", payload=b"{}"), make(2, status=DUE))
        said = {id: text(store.get(id)) for id in ("i1", "i2")}
        save(store, 7)
        again = reopen()
        assert again.load() == moment(7)
        assert {id: text(again.get(id)) for id in said} == said
        assert ids(again.window(NEVER, 10)) == ["i1"]

    def test_what_came_after_the_checkpoint_is_not_in_it(
        self, store: Store, reopen: Callable[[], Store]
    ) -> None:
        put(store, make(1, 100))
        save(store, 1)
        put(store, make(2, 100))
        change(store, got(store, "i1"), payload=b"later")
        again = reopen()
        assert (got(again, "i1").payload, again.get("i2")) == (b"", None)

    def test_the_newest_whole_checkpoint_wins(self, store: Store, reopen: Callable[[], Store]) -> None:
        for position in (1, 2, 3):
            put(store, make(position, 100))
            save(store, position)
        again = reopen()
        saved = again.load()
        assert saved is not None and saved.position == 3
        assert ids(again.window(NEVER, 10)) == ["i1", "i2", "i3"]

    def test_a_checkpoint_of_nothing_new_still_has_its_position(
        self, store: Store, reopen: Callable[[], Store]
    ) -> None:
        save(store, 1)
        save(store, 5)
        saved = reopen().load()
        assert saved is not None and saved.position == 5

    def test_what_is_unwritten_is_counted(self, store: Store) -> None:
        put(store, make(1, 100), make(2, 100))
        change(store, got(store, "i1"), payload=b"x")
        assert store.unwritten() == 2
        save(store)
        assert store.unwritten() == 0
        change(store, got(store, "i1"), payload=b"y")
        assert store.unwritten() == 1

    def test_changes_between_the_steps_are_not_in_it(self, store: Store, reopen: Callable[[], Store]) -> None:
        """At every step intents are changed, ended and added; the checkpoint must show the first moment."""
        put(store, *(make(seq, 90_000 + seq) for seq in range(1, _MANY + 1)))
        save(store, 1)
        for seq in range(1, _MANY + 1, 2):
            change(store, got(store, f"i{seq}"), payload=b"first")
        then = {f"i{seq}": text(store.get(f"i{seq}")) for seq in range(1, _MANY + 1)}
        for step, job in enumerate(store.checkpoint(moment(2))):
            _disturb(store, step)
            job()
            _disturb(store, step + 1_000)
        living = {id: text(store.get(id)) for id in then}
        assert living != then
        again = reopen()
        assert {id: text(again.get(id)) for id in then} == then
        assert len(again.page(None, None, SEQ_MAX, 2 * _MANY)) == _MANY, "nothing that was added meanwhile"

    def test_changes_between_the_steps_are_in_the_next_one(
        self, store: Store, reopen: Callable[[], Store]
    ) -> None:
        put(store, *(make(seq, 90_000 + seq) for seq in range(1, _MANY + 1)))
        for step, job in enumerate(store.checkpoint(moment(1))):
            _disturb(store, step)
            job()
        save(store, 2)
        now = {i.id: text(i) for i in store.page(None, None, SEQ_MAX, 2 * _MANY)}
        again = reopen()
        assert {i.id: text(i) for i in again.page(None, None, SEQ_MAX, 2 * _MANY)} == now

    def test_one_intent_that_changes_at_every_step_is_written_as_it_was(
        self, store: Store, reopen: Callable[[], Store]
    ) -> None:
        put(store, *(make(seq, status=DUE) for seq in range(1, _MANY + 1)))
        then = text(store.get("i700"))
        for step, job in enumerate(store.checkpoint(moment(1))):
            change(store, got(store, "i700"), payload=str(step).encode())
            job()
        assert text(reopen().get("i700")) == then

    @pytest.mark.parametrize("steps", [0, 1, 2, 3, 4])
    def test_an_abandoned_checkpoint_is_not_half_there(
        self, store: Store, reopen: Callable[[], Store], steps: int
    ) -> None:
        put(store, *(make(seq, 90_000) for seq in range(1, _MANY + 1)))
        save(store, 1)
        _rewrite(store, b"new")
        _abandon(store.checkpoint(moment(2)), steps)
        again = reopen()
        saved = again.load()
        assert saved is not None
        assert steps or saved.position == 1, "no job was run"
        found = again.page(None, None, SEQ_MAX, 2 * _MANY)
        assert len(found) == _MANY
        assert {intent.payload for intent in found} == {b"" if saved.position == 1 else b"new"}

    @pytest.mark.parametrize("steps", [0, 1, 2, 3, 4])
    def test_what_an_abandoned_checkpoint_did_not_write_is_in_the_next(
        self, store: Store, reopen: Callable[[], Store], steps: int
    ) -> None:
        put(store, *(make(seq, 90_000) for seq in range(1, _MANY + 1)))
        save(store, 1)
        _rewrite(store, b"new")
        _abandon(store.checkpoint(moment(2)), steps)
        change(store, got(store, "i3"), payload=b"after")
        now = {f"i{seq}": text(store.get(f"i{seq}")) for seq in range(1, _MANY + 1)}
        save(store, 3)
        again = reopen()
        saved = again.load()
        assert saved is not None and saved.position == 3
        assert {id: text(again.get(id)) for id in now} == now

    def test_jobs_may_run_in_another_thread(self, store: Store, reopen: Callable[[], Store]) -> None:
        put(store, *(make(seq, 90_000) for seq in range(1, _MANY + 1)))
        with ThreadPoolExecutor(1) as thread:
            for job in store.checkpoint(moment(1)):
                running = thread.submit(job)
                assert store.get("i5") is not None
                running.result()
        assert len(reopen().page(None, None, SEQ_MAX, 2 * _MANY)) == _MANY

    def test_while_a_checkpoint_is_written_everything_is_found(self, store: Store) -> None:
        put(store, *(make(seq, 90_000, key=f"k{seq}") for seq in range(1, _MANY + 1)))
        for job in store.checkpoint(moment(1)):
            _all_found(store)
            job()
            _all_found(store)
        _all_found(store)
        assert len(store.window(NEVER, 2 * _MANY)) == _MANY

    def test_a_window_may_move_while_a_checkpoint_is_written(self, store: Store) -> None:
        put(store, *(make(seq, 1_000 * seq) for seq in range(1, _MANY + 1)))
        held = []
        for job in store.checkpoint(moment(1)):
            held += store.window(store.edge[0] + 50_000, 1_000)
            job()
        assert held and all(store.get(intent.id) is intent for intent in held)


def _disturb(store: Store, step: int) -> None:
    """Change, end, wake and add a few intents, different ones at each step."""
    first = 1 + (step * 97) % (_MANY - 40)
    for seq in range(first, first + 30):
        intent = got(store, f"i{seq}")
        if intent.status is SCHEDULED and seq % 3 == 0:
            change(store, intent, status=DUE, wake_at_ms=0)
        elif intent.status is DUE:
            change(store, intent, status=DISPATCHING, delivery=intent.delivery + 1)
        elif intent.status is DISPATCHING:
            end(store, intent, 10_000 + step, 5_000, ACKED)
        else:
            change(store, intent, payload=f"step {step}".encode())
    put(store, make(100_000 + step, 95_000, payload=b"added"))


def _rewrite(store: Store, payload: bytes) -> None:
    for seq in range(1, _MANY + 1):
        change(store, got(store, f"i{seq}"), payload=payload)


def _abandon(jobs: Iterator[Job], steps: int) -> None:
    """Take some steps of a checkpoint, begin the next one, and stop."""
    for _ in range(steps):
        job = next(jobs, None)
        if job is not None:
            job()
    next(jobs, None)
    jobs.close()  # type: ignore[attr-defined]


def _all_found(store: Store) -> None:
    for seq in range(1, _MANY + 1, 37):
        assert got(store, f"i{seq}").seq == seq
        found = store.by_key(f"k{seq}")
        assert found is not None and found.seq == seq
    assert len(store.page(None, None, SEQ_MAX, 2 * _MANY)) == _MANY
