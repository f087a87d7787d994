"""What the simulator or its author found, each as a short story, to find it sooner should it come back."""

from __future__ import annotations

import pytest

from duetime.kernel import invariants
from duetime.kernel.kernel import Applied, Kernel
from duetime.limits import DAY_MS
from duetime.protocol.checkpoint import Marks
from duetime.protocol.command import (
    Advance,
    Cancel,
    Command,
    Configure,
    Pause,
    Resize,
    Resume,
    Revive,
    Settings,
    Settle,
    Start,
    Submit,
)
from duetime.protocol.effect import Deliver
from duetime.protocol.intent import ACKED, DEAD_LETTERED, DISPATCHING, DUE, SCHEDULED, Item
from duetime.protocol.outcome import Done, Settlement
from duetime.protocol.record import Record
from duetime.protocol.terms import Bare, Entity, ExpiredAction, Stream, Target, Terms, Tier, lane_of
from duetime.store.memory import MemoryStore
from duetime.store.sqlite.store import SqliteStore
from duetime.store.store import Store

BEGIN_MS = 1_700_000_000_000
CART = Entity("cart", "1", "add")


class Rig:
    """A kernel that is told the time."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.kernel = Kernel(store)
        self.now_ms = BEGIN_MS
        self.apply(Start(1))

    def apply(self, command: Command) -> Applied:
        applied = self.kernel.apply(Record(self.kernel.state.records + 1, self.now_ms, command))
        invariants.check(self.kernel.state)
        return applied

    def advance(self, ms: int) -> Applied:
        self.now_ms += ms
        return self.apply(Advance())

    def submit(
        self, id: str, target: Target, *, tier: Tier = Tier.STANDARD, deadline: int = 0, wait: int = 0,
        key: str | None = None, after: tuple[str, ...] = (),
    ) -> Applied:  # fmt: skip
        terms = Terms(target, lane_of(target), tier, expired_action=ExpiredAction.DEAD_LETTER)
        deadline_ms = self.now_ms + deadline if deadline else 0
        item = Item(id, 0, self.now_ms + wait, deadline_ms=deadline_ms, key=key, after=after)
        return self.apply(Submit((terms,), (item,)))

    def done(self, id: str) -> Applied:
        intent = self.kernel.state.store.get(id)
        assert intent is not None
        return self.apply(Settle((Settlement(id, intent.delivery, Done(), consumer=intent.consumer),)))

    def status(self, id: str) -> object:
        intent = self.kernel.state.store.get(id)
        return None if intent is None else intent.status

    def save(self) -> None:
        """A whole checkpoint: what is not needed in memory is on disk only from here on."""
        for job in self.store.checkpoint(self.kernel.checkpoint(0)):
            job()


@pytest.fixture
def rig():
    return Rig(MemoryStore())


@pytest.fixture
def sqlite_rig(tmp_path):
    store = SqliteStore(tmp_path / "state.db")
    yield Rig(store)
    store.close()


def test_revived_into_another_lane_it_is_not_handed_out_by_the_old_one(rig):
    """Its old entry in the paused lane looked as good as new."""
    rig.apply(Pause(lane_of(CART)))
    rig.submit("a", CART, deadline=100)
    rig.submit("b", CART)
    rig.advance(100)
    assert rig.status("a") is DEAD_LETTERED
    rig.apply(Revive("a", target=Stream("elsewhere")))
    applied = rig.apply(Resume(lane_of(CART)))
    assert [effect.id for effect in applied.effects] == ["b"]
    assert rig.status("a") is DUE


def test_revived_from_disk_it_meets_its_own_old_entry(sqlite_rig):
    """Two objects of one intent at one place in a heap: neither is less than the other."""
    rig = sqlite_rig
    rig.submit("a", CART)
    rig.submit("b", CART, deadline=100)
    rig.advance(100)
    assert rig.status("b") is DEAD_LETTERED
    rig.save()
    rig.apply(Revive("b"))
    assert [effect.id for effect in rig.done("a").effects] == ["b"]


def test_the_next_message_of_another_tier_does_not_wait_for_a_permit_it_does_not_need(rig):
    """The first in line had no permit; when it went away, nobody looked at the next."""
    for tier in (Tier.HIGH, Tier.STANDARD, Tier.ECONOMY):
        rig.apply(Resize(tier, 1))
    rig.submit("busy", Bare(), tier=Tier.HIGH)
    rig.submit("first", CART, tier=Tier.HIGH)
    rig.submit("second", CART, tier=Tier.ECONOMY)
    assert (rig.status("first"), rig.status("second")) == (DUE, DUE)
    applied = rig.apply(Cancel("first"))
    assert [effect.id for effect in applied.effects if isinstance(effect, Deliver)] == ["second"]


def test_an_intent_that_ends_after_the_clock_was_set_back_is_not_forgotten_at_once(rig):
    rig.apply(Configure(Settings(retention_ms=DAY_MS, dead_letter_retention_ms=DAY_MS)))
    rig.now_ms += 10 * DAY_MS
    rig.apply(Advance())
    rig.now_ms -= 10 * DAY_MS
    rig.submit("a", Bare())
    rig.done("a")
    assert rig.status("a") is ACKED


def test_dependents_end_with_their_parent_though_it_is_revived_in_the_same_record(rig):
    """Nobody had told them yet, and then it had ended as SCHEDULED, they were told."""
    rig.apply(Pause("bare:"))
    rig.submit("parent", Bare(), deadline=100)
    rig.submit("child", Bare(), after=("parent",))
    rig.now_ms += 100
    rig.apply(Revive("parent"))
    child = rig.kernel.state.store.get("child")
    assert child is not None and child.status is DEAD_LETTERED
    assert "ended as DEAD_LETTERED" in child.rare.last_error.message


def test_a_clock_set_back_while_it_runs_does_not_bring_its_retry_forward(rig):
    rig.submit("a", Bare(), wait=60_000)
    rig.advance(60_000)
    assert rig.status("a") is DISPATCHING
    rig.now_ms -= 30_000
    rig.apply(Start(2))
    rig.advance(5_000)
    assert rig.status("a") is SCHEDULED


def test_a_key_finds_the_newest_also_when_an_older_one_comes_into_memory(sqlite_rig):
    """The older one was read from disk for its time had come, and took the key with it."""
    rig = sqlite_rig
    rig.apply(Configure(Settings(key_window_ms=60_000)))
    rig.submit("old", Bare(), wait=DAY_MS, key="k")
    rig.now_ms += 120_000
    rig.submit("new", Bare(), wait=9 * DAY_MS, key="k")
    rig.save()
    rig.kernel.state.timers.extend(rig.now_ms + 2 * DAY_MS, 1_000)
    found = rig.kernel.state.store.by_key("k")
    assert found is not None and found.id == "new"
    rig.submit("again", Bare(), key="k")
    assert rig.status("again") is None


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("which", ["rig", "sqlite_rig"])
def test_a_key_finds_the_older_one_when_the_newer_is_forgotten(which, saved, request):
    """Whether the newer one's row is gone already must not be seen."""
    rig = request.getfixturevalue(which)
    rig.apply(Configure(Settings(key_window_ms=60_000, retention_ms=60_000)))
    rig.submit("old", Bare(), wait=9 * DAY_MS, key="k")
    rig.now_ms += 120_000
    rig.submit("new", Bare(), key="k")
    rig.done("new")
    if saved:
        rig.save()
    rig.advance(240_000)
    assert rig.status("new") is None
    found = rig.kernel.state.store.by_key("k")
    assert found is not None and found.id == "old"


def test_an_id_used_again_while_a_checkpoint_is_written(tmp_path):
    """The checkpoint has the intent that was there at its moment, not the namesake that came since."""
    store = SqliteStore(tmp_path / "state.db")
    rig = Rig(store)
    rig.submit("a", Bare())
    rig.done("a")
    checkpoint = rig.kernel.checkpoint(0)
    jobs = store.checkpoint(checkpoint)
    job = next(jobs)
    store.forget(Marks(finished_before_ms=rig.now_ms + 1))
    rig.kernel.state.marks = Marks(finished_before_ms=rig.now_ms + 1)
    rig.submit("a", Bare(), wait=1_000)
    rig.apply(Cancel("a"))
    job()
    for job in jobs:
        job()
    store.close()
    reopened = SqliteStore(tmp_path / "state.db")
    found = reopened.get("a")
    reopened.close()
    assert found is not None and found.seq == 1
