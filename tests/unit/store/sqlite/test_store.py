"""What is in memory and what is on disk only."""

from __future__ import annotations

from pathlib import Path

import pytest

from duetime.kernel.timers import Timers
from duetime.limits import DAY_MS
from duetime.protocol.checkpoint import Marks
from duetime.protocol.command import Pause, Resume
from duetime.protocol.intent import DUE, Status
from duetime.protocol.terms import Backoff, Redelivery
from duetime.store.sqlite import rows
from duetime.store.sqlite import store as sqlite
from duetime.store.sqlite.store import SqliteStore
from duetime.store.store import SEQ_MAX
from duetime.testing.contracts.store_tools import change, got, make, put, save
from tests.unit.kernel.bench import T0, Bench, delivered, entity, errors, queue, stream, thawed

HOUR = 3_600_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path):
    store = SqliteStore(path)
    yield store
    store.close()


@pytest.fixture
def bench(store):
    bench = Bench(store)
    bench.state.timers.extend(T0 + 60_000, 100)
    return bench


def reopened(bench: Bench, path: Path) -> Bench:
    bench.store.close()
    return thawed(SqliteStore(path), bench.ms)


def hot(store, *ids: str) -> set[str]:
    """Which of these are in memory; no other is."""
    found = {id for id in ids if store.peek(id) is not None}
    assert store.hot() == len(found)
    return found


# Hot and cold.


def test_far_intents_leave_memory_with_the_next_checkpoint(bench, store):
    bench.submit(*(f"far{n}" for n in range(1_000)), delay=HOUR)
    bench.submit("near", delay=30_000)
    bench.submit("running", "due", on=stream())
    bench.demand("w", "stream:s")
    assert store.hot() == 1_003
    bench.save()
    assert hot(store, "near", "running", "due") == {"near", "running", "due"}
    assert not store.deferred() and not store.unwritten()


def test_finished_intents_leave_memory_with_the_next_checkpoint(bench, store):
    bench.submit("a", "b", key=None)
    bench.done("a")
    bench.cancel("b")
    bench.save()
    assert hot(store) == set()
    assert bench.statuses("a", "b") == ["ACKED", "CANCELED"]


def test_blocked_intents_cost_no_memory(bench, store):
    bench.submit("p")
    bench.submit("c", after=("p",))
    bench.save()
    assert hot(store, "p") == {"p"}
    assert delivered(bench.done("p")) == ["c"]


def test_a_cold_intent_is_found_changed_and_cancelled(bench, store):
    bench.submit("a", "b", delay=HOUR, key=None)
    bench.save()
    assert hot(store) == set()
    assert bench.status("a") is Status.SCHEDULED
    assert hot(store) == set(), "looking does not warm it"
    bench.patch("a", payload=b"x")
    bench.cancel("b")
    assert bench.intent("a").payload == b"x"
    bench.save()
    assert hot(store) == set()
    assert bench.intent("a").payload == b"x"
    assert delivered(bench.at(HOUR)) == ["a"]


def test_a_cold_intent_fires_when_its_window_comes(bench, store):
    bench.submit("a", delay=HOUR)
    bench.save()
    assert bench.next() == HOUR
    assert delivered(bench.at(HOUR - 1)) == []
    assert delivered(bench.at(HOUR)) == ["a"]


def test_an_intent_in_the_window_is_no_longer_deferred(bench, store):
    bench.submit("a", delay=HOUR)
    assert store.deferred() == 1
    bench.state.timers.extend(T0 + 2 * HOUR, 10)
    assert not store.deferred()


def test_a_cold_key_is_remembered(bench, store):
    bench.submit("a", delay=HOUR, key="k", fingerprint=7)
    bench.save()
    assert not store.hot()
    assert errors(bench.submit("b", key="k", fingerprint=8)) == ["KeyReused"]
    assert bench.store.get("b") is None


def test_a_key_of_two_cold_intents_names_the_newer_for_its_whole_window(bench, store):
    """The older one, long past the key's window, comes into memory first."""
    bench.submit("a", delay=30 * HOUR, key="k")
    bench.at(25 * HOUR)
    bench.submit("b", delay=20 * HOUR, key="k")
    bench.save()
    bench.state.timers.extend(T0 + 30 * HOUR, 10)
    assert hot(store, "a") == {"a"}
    bench.at(29 * HOUR)
    bench.submit("c", key="k")
    assert store.get("c") is None, "b has this key until the next day"


def test_a_window_that_has_fewer_than_asked_may_still_have_more_behind_it(bench, store):
    """Rows on disk that have moved since do not hide those that follow them."""
    bench.submit(*(f"i{n}" for n in range(10)), delay=HOUR)
    bench.save()
    for n in range(3):
        bench.patch(f"i{n}", execute_at_ms=T0 + DAY_MS)
    timers = bench.state.timers
    assert timers.extend(T0 + 2 * HOUR, 4) is True
    while timers.extend(T0 + 2 * HOUR, 4):
        pass
    assert store.edge == (T0 + 2 * HOUR, SEQ_MAX)
    assert sum(1 for n in range(10) if bench.intent(f"i{n}").armed) == 7


def test_the_kernel_never_holds_an_object_that_the_store_released(bench, store):
    bench.submit("a", on=entity())
    bench.submit("b", on=entity(), delay=HOUR)
    bench.fail("a", delay_ms=2 * HOUR)  # it holds its entity, far behind the edge
    bench.save()
    assert hot(store, "a") == {"a"}
    assert delivered(bench.at(HOUR)) == []
    assert delivered(bench.at(2 * HOUR)) == ["a"]
    assert delivered(bench.done("a")) == ["b"]


def test_an_intent_that_was_put_off_while_it_waited_meets_its_former_self(bench, store):
    """Due, put off for an hour, cold, read again as another object: at the same place of the same lane."""
    bench.do(Pause("entity:cart/e1"))
    for n in range(8):
        bench.submit(f"m{n}", on=entity())
    for n in range(8):
        bench.patch(f"m{n}", execute_at_ms=T0 + HOUR)
    bench.save()
    assert hot(store) == set()
    bench.at(HOUR)
    assert bench.statuses(*(f"m{n}" for n in range(8))) == ["DUE"] * 8
    order = delivered(bench.do(Resume("entity:cart/e1")))
    while len(order) < 8:
        order += delivered(bench.done(order[-1]))
    assert order == [f"m{n}" for n in range(8)]


def test_terms_are_shared_by_those_that_are_read(bench, store):
    bench.submit(*(f"i{n}" for n in range(50)), delay=HOUR)
    bench.save()
    found = [store.get(f"i{n}") for n in range(50)]
    assert len({id(intent.terms) for intent in found}) == 1


@pytest.fixture
def few_terms_kept(monkeypatch):
    monkeypatch.setattr("duetime.store.sqlite.rows.TERMS_KEPT", 4)


def test_the_cache_of_terms_has_a_limit(few_terms_kept, store):
    put(store, *(make(seq, 90_000, terms=queue(f"q{seq}")) for seq in range(1, 21)))
    save(store)
    first = got(store, "i1").terms
    assert got(store, "i1").terms is first
    assert [got(store, f"i{seq}").terms.lane for seq in range(1, 21)] == [f"task:q{n}" for n in range(1, 21)]
    assert got(store, "i1").terms is not first, "the cache was emptied"


# Restart.


def test_everything_is_there_after_a_restart(bench, path):
    bench.submit("far", delay=HOUR, key="k", payload=b"1")
    bench.submit("running")
    bench.submit("p", "d", delay=2 * HOUR)
    bench.submit("c", after=("p",))
    bench.cancel("d")
    bench.save()
    again = reopened(bench, path)
    assert again.statuses("far", "running", "p", "c", "d") == [
        "SCHEDULED", "DISPATCHING", "SCHEDULED", "BLOCKED", "CANCELED",
    ]  # fmt: skip
    assert again.done("running").answer == [True]
    assert delivered(again.at(HOUR)) == ["far"]
    assert delivered(again.at(2 * HOUR)) == ["p"]
    assert delivered(again.done("p")) == ["c"]
    again.store.close()


def test_messages_of_one_millisecond_keep_their_order_over_a_restart(bench, path):
    """More than nine of them, so that an order by text would show."""
    ids = [f"m{n}" for n in range(25)]
    bench.submit(*ids, on=entity())
    bench.save()
    again = reopened(bench, path)
    order = ["m0"]
    while len(order) < 25:
        order += delivered(again.done(order[-1]))
    assert order == ids
    again.store.close()


def test_a_retry_s_whole_policy_survives(bench, path):
    on = queue("q", redelivery=Redelivery(3, Backoff.EXPONENTIAL, 700, 900, 300, False))
    bench.submit("a", on=on)
    bench.fail("a")
    bench.save()
    again = reopened(bench, path)
    assert again.intent("a").terms == on
    assert delivered(again.at(700)) == ["a"]
    again.fail("a")
    assert again.intent("a").wake_at_ms == T0 + 700 + 900
    again.store.close()


def test_one_checkpoint_at_a_time(store):
    put(store, make(1, 90_000))
    jobs = store.checkpoint(Bench(store).kernel.checkpoint(1))
    next(jobs)
    with pytest.raises(AssertionError, match="one checkpoint"):
        next(store.checkpoint(Bench(store).kernel.checkpoint(2)))
    jobs.close()


def test_an_id_that_is_used_again_while_a_checkpoint_is_written(store, path):
    """The row of the one that is forgotten belongs to the moment; its namesake does not."""
    put(store, *(make(seq, status=DUE) for seq in range(1, 1_200)))
    change(store, got(store, "i1"), status=Status.ACKED, ended=1, finished_at_ms=5)
    jobs = store.checkpoint(Bench(store).kernel.checkpoint(1))
    next(jobs)()
    store.forget(Marks(finished_before_ms=10))
    put(store, make(5_000, 70_000, id="i1", payload=b"new"))
    change(store, got(store, "i1"), payload=b"newer")
    for job in jobs:
        job()
    assert got(store, "i1").payload == b"newer"
    store.close()
    again = SqliteStore(path)
    assert got(again, "i1").seq == 1
    again.close()


def test_a_key_finds_an_older_live_intent_after_the_newest_was_purged(store):
    put(store, make(1, 90_000, key="k"), make(2, key="k"))
    change(store, got(store, "i2"), status=Status.ACKED, ended=1, finished_at_ms=2_000)
    store.forget(Marks(finished_before_ms=3_000, key_before_ms=3_000))
    found = store.by_key("k")
    assert found is not None and found.id == "i1"
    save(store)
    found = store.by_key("k")
    assert found is not None and found.id == "i1"


def test_cooling_makes_pauses_for_the_loop(store, monkeypatch):
    monkeypatch.setattr("duetime.store.sqlite.store._SLICE", 10)
    put(store, *(make(seq, 90_000) for seq in range(1, 201)))
    jobs = list(store.checkpoint(Bench(store).kernel.checkpoint(1)))
    assert len(jobs) > 22
    assert not store.hot()


def test_a_closed_store_raises(store):
    store.close()
    with pytest.raises(Exception, match="closed"):
        store.get("a")


# Ids that were never on disk are not looked for there.


AGES = ["0", "19a8b0d5f11-00000000-000001", "19a8b0d5f11-00000000-000002", "1z", "2", "order-7", "\U0001f600"]


@pytest.mark.parametrize("again", [False, True], ids=["running", "opened again"])
def test_any_id_is_found_on_disk(bench, store, path, again):
    for known in AGES:
        bench.submit(known, delay=HOUR)
        bench.save()
        assert not hot(bench.store)
        if again:
            bench = reopened(bench, path)
        for each in AGES:
            assert (bench.store.get(each) is not None) == (AGES.index(each) <= AGES.index(known)), each


def test_a_new_id_that_says_its_time_costs_no_look(sqlite_connections, bench, store):
    bench.submit("19a8b0d5f11-00000000-000002", delay=HOUR)
    bench.save()
    statements: list[str] = []
    for connection in sqlite_connections:
        connection.set_trace_callback(statements.append)
    assert store.get("19a8b0d5f11-00000000-000003") is None and not statements
    assert store.get("19a8b0d5f11-00000000-000001") is None and statements, "an older id is looked for"


def test_a_window_over_many_of_one_millisecond_costs_the_same_at_its_end_as_at_its_beginning(
    tmp_path, sqlite_connections
):
    """Each slice began at the first of that millisecond again."""
    store = SqliteStore(tmp_path / "store.db")
    for seq in range(1, 5_001):
        store.add(make(seq, T0 + HOUR))
    save(store, 1)
    store.close()
    store = SqliteStore(tmp_path / "store.db")
    timers, work, looks = Timers(store), [], 0

    def look() -> int:
        nonlocal looks
        looks += 1
        return 0

    for connection in sqlite_connections[-2:]:
        connection.set_progress_handler(look, 100)
    more = True
    while more:
        looks = 0
        more = timers.extend(T0 + HOUR, 100)
        timers.far_ms()
        work.append(looks)
    assert len(work) >= 50
    assert max(work) <= 2 * work[0], work
    assert len(timers.expire(T0 + HOUR)) == 5_000
    store.close()


def test_a_checkpoint_of_large_intents_holds_few_of_their_rows_at_a_time(bench, store, monkeypatch):
    """All of them would be in memory three times: as intents, as rows, and in SQLite's copy."""
    monkeypatch.setattr(sqlite, "CHECKPOINT_WRITE_BYTES", 100_000)
    written: list[int] = []
    write = rows.write

    def watched(writer, made):
        written.append(sum(len(value) for value in made if type(value) is bytes))
        write(writer, made)

    monkeypatch.setattr(rows, "write", watched)
    bench.submit(*(f"l{n}" for n in range(50)), payload=b"x" * 10_000, delay=HOUR)
    bench.save()
    assert len(written) >= 5 and max(written) <= 100_000 + 2 * 10_000
    assert store.large_bytes() == 0 and got(store, "l49").payload == b"x" * 10_000
