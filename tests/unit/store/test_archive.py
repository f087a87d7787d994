"""The archive: reads beside the store, of one moment, along an index, and notices damage."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from duetime.errors import Damaged, NotReady
from duetime.protocol.checkpoint import Marks
from duetime.protocol.filter import Filter
from duetime.protocol.intent import (
    ACKED,
    BLOCKED,
    CANCELED,
    DEAD_LETTERED,
    DISPATCHING,
    DUE,
    EXPIRED,
    SCHEDULED,
    Entry,
    Rare,
)
from duetime.store.archive import FIRST, Archive, key_of
from duetime.store.sqlite.store import SqliteStore
from duetime.testing.contracts.store_tools import end, make, moment, put, save


@pytest.fixture
def store(tmp_path):
    store = SqliteStore(tmp_path / "store.db")
    yield store
    store.close()


@pytest.fixture
def archive(store):
    archive = store.archive()
    yield archive
    archive.close()


def ids(archive: Archive, filter: Filter, order="newest", marks: Marks | None = None) -> list[str]:
    with archive.moment() as there:
        assert there
        scan = archive.page(filter, order, FIRST, 500, marks if marks is not None else Marks())
    return [intent.id for _, intent in scan.found]


def test_an_archive_cannot_write(sqlite_connections, store, archive):
    put(store, make(1, 5_000))
    save(store)
    with archive.moment(), pytest.raises(sqlite3.OperationalError, match="readonly"):
        sqlite_connections[-1].execute("DELETE FROM intents")


def test_before_the_first_checkpoint_there_is_nothing(archive):
    with archive.moment() as there:
        assert there
        assert archive.checkpoint() is None
        assert archive.marks() == Marks()
        assert archive.get("i1") is None


def test_a_file_that_is_not_there_yet(tmp_path):
    archive = Archive(tmp_path / "none.db")
    with archive.moment() as there:
        assert not there
        assert archive.get("x") is None
    assert not (tmp_path / "none.db").exists()


def test_a_read_sees_one_snapshot_during_writes(store, archive):
    put(store, make(1, 5_000))
    save(store, 1)
    with archive.moment():
        assert archive.get("i1") is not None
        put(store, make(2, 5_000))
        save(store, 2)
        assert archive.get("i2") is None
    with archive.moment():
        assert archive.get("i2") is not None
        checkpoint = archive.checkpoint()
        assert checkpoint is not None
        assert checkpoint.position == 2


def test_intents_being_written_are_still_changed(store):
    put(store, make(1, 5_000))
    steps = store.checkpoint(moment(1))
    next(steps)()
    assert [intent.id for intent in store.changed()] == ["i1"]
    for job in steps:
        job()
    assert store.changed() == []
    assert store.peek("i1") is None
    assert store.hot() == 0


def test_the_forgotten_are_not_shown(store, archive):
    intents = [make(n) for n in range(1, 4)]
    put(store, *intents)
    for n, intent in enumerate(intents, 1):
        end(store, intent, n, 1_000 * n)
    save(store)
    marks = Marks(finished_before_ms=2_500)
    assert ids(archive, Filter((ACKED,)), marks=marks) == ["i3"]
    save(store, 2, marks)
    with archive.moment():
        assert archive.get("i1") is None
        assert archive.get("i3") is not None


@contextmanager
def plans_of(connections: list[sqlite3.Connection]) -> Iterator[list[str]]:
    """How SQLite runs the queries of this block on the newest connection."""
    queries: list[str] = []
    plans: list[str] = []
    connection = connections[-1]
    connection.set_trace_callback(queries.append)
    yield plans
    connection.set_trace_callback(None)
    assert queries
    for query in queries:
        plans += [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]


@pytest.mark.parametrize(
    ("statuses", "order", "index"),
    [
        ((DEAD_LETTERED,), "newest", "intents_rare"),
        ((EXPIRED,), "newest", "intents_rare"),
        ((CANCELED,), "due", "intents_rare"),
        ((BLOCKED,), "newest", "intents_rare"),
        ((DUE,), "newest", "intents_hot"),
        ((DISPATCHING,), "newest", "intents_hot"),
        ((SCHEDULED,), "due", "intents_wake"),
        ((), "newest", "PRIMARY KEY"),
        ((SCHEDULED, ACKED), "newest", "PRIMARY KEY"),
    ],
)
def test_every_status_is_read_along_an_index(sqlite_connections, store, archive, statuses, order, index):
    with archive.moment(), plans_of(sqlite_connections) as plans:
        archive.page(Filter(statuses), order, FIRST, 10, Marks())
    assert any(index in plan for plan in plans), plans
    assert not any(plan == "SCAN intents" for plan in plans), plans


def test_slots_are_counted_from_the_index_alone(sqlite_connections, store, archive):
    with archive.moment(), plans_of(sqlite_connections) as plans:
        archive.slots(0, 10_000, 1_000)
    assert any("COVERING INDEX intents_wake" in plan for plan in plans), plans


def test_damage_is_raised_never_served(store, archive, tmp_path):
    put(store, make(1, 5_000), make(2, 5_000))
    save(store)
    with sqlite3.connect(tmp_path / "store.db") as connection:
        (body,) = connection.execute("SELECT body FROM intents WHERE seq = 2").fetchone()
        connection.execute("UPDATE intents SET body = ? WHERE seq = 2", (body.replace(b"work", b"wurk"),))
    connection.close()
    with archive.moment():
        assert archive.get("i1") is not None
        with pytest.raises(Damaged, match="row 2"):
            archive.get("i2")
    with pytest.raises(Damaged), archive.moment():
        archive.page(Filter(), "newest", FIRST, 10, Marks())
    with archive.moment():  # and the next reader is not hindered
        assert archive.get("i1") is not None


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "store.db").write_bytes(b"not a database at all" * 100)
    archive = Archive(tmp_path / "store.db")
    with pytest.raises(Damaged), archive.moment():
        archive.get("x")
    archive.close()


def test_only_a_story_needs_to_be_read_to_know_how_it_stood(store, archive):
    plain = make(1, 5_000)
    told = make(2, 5_000)
    told.rare = Rare(history=[Entry(2_000, SCHEDULED, 0, "patched")])
    waiting = make(3, 5_000, status=BLOCKED)
    waiting.rare = Rare(after=("i1",))
    put(store, plain, told, waiting, make(4, 5_000, status=DUE))
    save(store)
    with archive.moment():
        standing = archive.standing(3_000)
        assert standing.counts == {(3, int(SCHEDULED)): 1}
        assert standing.open_counts == {3: 3}
        assert [intent.id for intent in standing.open] == ["i2", "i3", "i4"]
        assert list(archive.stood(3_000, [1, 2, 3, 4])) == [(3, int(SCHEDULED))]
        assert archive.standing(999).counts == {}


def test_the_place_by_time_is_the_next_look_or_the_plan():
    scheduled = make(7, 5_000)
    assert key_of(scheduled, "due") == (5_000, 7)
    assert key_of(scheduled, "newest") == (-7, 0)
    scheduled.status = DUE
    scheduled.wake_at_ms = 0
    assert key_of(scheduled, "due") == (5_000, 7)


def test_a_store_of_another_version_is_not_ready(tmp_path):
    """The engine brings it to this version when it has the folder; until then nothing is read."""
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1")
    archive = Archive(path)
    with pytest.raises(NotReady), archive.moment():
        pass
    path.unlink()
    SqliteStore(path).close()
    with archive.moment() as there:
        assert there
    archive.close()
