"""The rows of forgotten intents give their room back, a little at a time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from duetime.protocol.checkpoint import Marks
from duetime.protocol.intent import ACKED, CANCELED, DEAD_LETTERED, EXPIRED
from duetime.protocol.terms import Claim, Until
from duetime.store.sqlite import purge as module
from duetime.store.sqlite.store import SqliteStore
from duetime.testing.contracts.store_tools import end, got, make, put, save


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path):
    store = SqliteStore(path)
    yield store
    store.close()


def rows(path: Path) -> list[int]:
    """What is really in the file."""
    connection = sqlite3.connect(path)
    found = [seq for (seq,) in connection.execute("SELECT seq FROM intents ORDER BY seq")]
    connection.close()
    return found


def finish(
    store, seq: int, at_ms: int, status=ACKED, key: str | None = None, created: int = 1_000, claim=None
) -> None:
    """One intent, ended as the `seq`-th."""
    put(store, make(seq, key=key, claim=claim, created_at_ms=created))
    end(store, got(store, f"i{seq}"), seq, at_ms, status)


def purged(store, path: Path, marks: Marks) -> list[int]:
    """What is left after a checkpoint with these marks."""
    store.forget(marks)
    save(store, 9, marks)
    return rows(path)


def test_by_time(store, path):
    for seq, status in enumerate((ACKED, CANCELED, EXPIRED, ACKED), 1):
        finish(store, seq, 1_000 * seq, status)
    assert purged(store, path, Marks(finished_before_ms=3_000)) == [3, 4]
    assert purged(store, path, Marks(finished_before_ms=3_001)) == [4]


def test_by_count(store, path):
    for seq in range(1, 11):
        finish(store, seq, 5_000)
    assert purged(store, path, Marks(ended_to=7)) == [8, 9, 10]


def test_live_intents_stay_whatever_the_marks(store, path):
    put(store, make(1, 90_000), make(2))
    assert purged(store, path, Marks(10**12, 10**12, 10**9, 10**12)) == [1, 2]


def test_dead_letters_have_a_time_of_their_own(store, path):
    finish(store, 1, 1_000, DEAD_LETTERED)
    finish(store, 2, 5_000, DEAD_LETTERED)
    assert purged(store, path, Marks(finished_before_ms=9_000, ended_to=99)) == [1, 2]
    assert purged(store, path, Marks(finished_before_ms=9_000, dead_before_ms=1_001)) == [2]


def test_a_dead_letter_with_a_shorter_time_than_others(store, path):
    finish(store, 1, 1_000, DEAD_LETTERED)
    finish(store, 2, 1_000)
    assert purged(store, path, Marks(dead_before_ms=5_000)) == [2]


def test_a_keyed_one_that_ended_before_it_was_made_stays_for_its_window(store, path):
    finish(store, 1, 1_000, key="k", created=5_000)  # the clock was set back in between
    assert purged(store, path, Marks(9_000, 9_000, 0, 5_000)) == [1]
    assert store.by_key("k") is not None, "the marks do not hide it"
    assert purged(store, path, Marks(9_000, 9_000, 0, 5_001)) == []


def test_keyed_ones_stay_for_their_window(store, path):
    finish(store, 1, 1_000, key="k")
    finish(store, 2, 1_000, DEAD_LETTERED, key="l")
    everything = Marks(finished_before_ms=9_000, dead_before_ms=9_000, key_before_ms=1_000)
    assert purged(store, path, everything) == [1, 2]
    assert purged(store, path, Marks(9_000, 9_000, 0, 1_001)) == []


def test_keyed_ones_out_of_their_window_still_have_the_retention_time(store, path):
    finish(store, 1, 5_000, key="k")
    assert purged(store, path, Marks(finished_before_ms=5_000, key_before_ms=9_000)) == [1]
    assert purged(store, path, Marks(finished_before_ms=5_001, key_before_ms=9_000)) == []


def test_claims_for_a_time_stay_as_keys_do(store, path):
    timed = Claim("c", Until.TIME, 500)
    finish(store, 1, 1_000, claim=timed)
    finish(store, 2, 1_000, DEAD_LETTERED, claim=timed)
    finish(store, 3, 1_000, claim=Claim("c", Until.END))
    everything = Marks(finished_before_ms=9_000, dead_before_ms=9_000, key_before_ms=1_000)
    assert purged(store, path, everything) == [1, 2]
    assert purged(store, path, Marks(9_000, 9_000, 0, 1_001)) == []


def test_purge_and_forget_agree(store, path):
    """Every kind of end against every kind of mark: the file never loses what the marks still show."""
    seq = 0
    for at_ms in (1_000, 2_000, 3_000):
        for key in (None, "k"):
            for status in (ACKED, CANCELED, EXPIRED, DEAD_LETTERED):
                seq += 1
                finish(store, seq, at_ms, status, f"{key}{seq}" if key else None, created=at_ms)
    save(store, 1)
    for marks in (
        Marks(),
        Marks(finished_before_ms=1_500),
        Marks(finished_before_ms=1_500, key_before_ms=1_500),
        Marks(finished_before_ms=1_500, key_before_ms=1_500, dead_before_ms=2_500),
        Marks(finished_before_ms=2_500, key_before_ms=2_500, dead_before_ms=2_500, ended_to=14),
    ):
        left = purged(store, path, marks)
        shown = [number for number in range(1, seq + 1) if store.get(f"i{number}") is not None]
        assert shown == left


def test_a_purge_is_bounded_and_continues_with_the_next_checkpoint(store, path, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 3)
    monkeypatch.setattr(module, "PURGE_ROWS_MIN", 6)
    monkeypatch.setattr(module, "_PACE", 0)
    for seq in range(1, 21):
        finish(store, seq, 1_000)
    marks = Marks(finished_before_ms=2_000)
    left = [len(purged(store, path, marks)) for _ in range(5)]
    assert left == [14, 8, 2, 0, 0]


def test_a_purge_of_kept_ones_is_bounded_too(store, path, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 3)
    monkeypatch.setattr(module, "PURGE_ROWS_MIN", 3)
    monkeypatch.setattr(module, "_PACE", 0)
    for seq in range(1, 9):
        finish(store, seq, 1_000, DEAD_LETTERED)
    left = [len(purged(store, path, Marks(dead_before_ms=2_000))) for _ in range(4)]
    assert left == [5, 2, 0, 0]


@pytest.mark.parametrize("key", [False, True], ids=["plain", "keyed"])
def test_a_purge_keeps_up_with_what_is_written(store, path, monkeypatch, key):
    """Each checkpoint writes and ends many; those of the one before are all gone after it."""
    monkeypatch.setattr(module, "_CHUNK", 10)
    monkeypatch.setattr(module, "PURGE_ROWS_MIN", 10)
    seq, left = 0, []
    for round_ in range(1, 6):
        now_ms = 1_000 * round_
        for _ in range(100):
            seq += 1
            finish(store, seq, now_ms, key=f"k{seq}" if key else None, created=now_ms)
        marks = Marks(finished_before_ms=now_ms, key_before_ms=now_ms)
        left.append(len(purged(store, path, marks)))
    assert left == [100] * 5


def test_the_count_holds_for_keyed_ones_on_disk(store, path):
    for seq in range(1, 11):
        finish(store, seq, 1_000 * seq, key=f"k{seq}", created=1_000 * seq)
    assert purged(store, path, Marks(ended_to=7, key_before_ms=5_000)) == [5, 6, 7, 8, 9, 10], (
        "in their window"
    )
    assert purged(store, path, Marks(ended_to=7, key_before_ms=9_000)) == [8, 9, 10]


def test_forgotten_ones_take_no_memory(store):
    for seq in range(1, 101):
        finish(store, seq, 1_000)
    marks = Marks(finished_before_ms=2_000)
    store.forget(marks)
    save(store, 1, marks)
    assert not store.hot()


def test_room_is_used_again(store, path):
    """Many rounds of the same work do not make the file grow without end."""
    pages = []
    seq = 0
    for round_ in range(1, 31):
        for _ in range(200):
            seq += 1
            finish(store, seq, 1_000 * round_)
        purged(store, path, Marks(finished_before_ms=1_000 * round_))
        with closing(sqlite3.connect(path)) as connection:
            pages.append(connection.execute("PRAGMA page_count").fetchone()[0])
    assert max(pages[10:]) <= max(pages[:10])
