"""The contract of stores. A store's test subclasses `StoreContract` and provides one fixture:

```python
class TestSqliteStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path):
        return lambda: SqliteStore(tmp_path / "store.db")
```

`open_store` returns a new handle on the same storage each time, with what the last complete checkpoint wrote.
The previous handle is closed first. The helpers use a store as the kernel does: `touch` before a change,
`defer` for an intent that wakes after the edge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from duetime.protocol.checkpoint import Marks
from duetime.protocol.intent import ACKED, CANCELED, DEAD_LETTERED, DISPATCHING, DUE, SCHEDULED, Status
from duetime.store.store import SEQ_MAX, Store
from duetime.testing.contracts.checkpoint import OpenStore
from duetime.testing.contracts.claims import ClaimContract
from duetime.testing.contracts.store_tools import (
    NEVER,
    OTHER,
    TERMS,
    change,
    end,
    got,
    ids,
    make,
    put,
    save,
    text,
)

__all__ = ["OpenStore", "StoreContract"]


class StoreContract(ClaimContract):
    """Subclass it and provide `open_store`: the tests hold your store to the protocol's text."""

    # Empty.

    def test_an_empty_store_has_nothing(self, store: Store) -> None:
        assert store.load() is None
        assert store.get("a") is None
        assert store.by_key("k") is None
        assert store.window(NEVER, 10) == list(store.held()) == store.page(None, None, 99, 10) == []
        assert store.next_wake() is None
        assert store.unwritten() == 0

    def test_closing_twice_is_fine(self, store: Store) -> None:
        store.close()
        store.close()

    # One live object per intent.

    def test_what_was_added_is_the_object_that_is_found(self, store: Store) -> None:
        intent = make(1, 5_000, key="k")
        put(store, intent)
        assert store.get("i1") is intent
        assert store.by_key("k") is intent
        assert store.get("i2") is None
        assert store.by_key("i1") is None

    def test_a_change_is_seen_at_once(self, store: Store) -> None:
        put(store, make(1, 5_000))
        change(store, got(store, "i1"), payload=b"new")
        assert got(store, "i1").payload == b"new"

    @pytest.mark.parametrize("status", [DUE, DISPATCHING])
    def test_what_the_kernel_holds_stays_the_same_object(self, store: Store, status: Status) -> None:
        intent = make(1, status=status)
        put(store, intent)
        save(store, 1)
        assert store.get("i1") is intent
        change(store, intent, payload=b"x")
        save(store, 2)
        assert store.get("i1") is intent

    def test_what_is_within_the_edge_stays_the_same_object(self, store: Store) -> None:
        store.window(10_000, 10)
        intent = make(1, 9_999)
        put(store, intent)
        save(store)
        assert store.get("i1") is intent

    def test_a_holder_stays_the_same_object(self, store: Store) -> None:
        intent = make(1, 50_000, holds=True)
        put(store, intent)
        save(store)
        assert store.get("i1") is intent

    def test_a_change_of_what_was_on_disk_only_is_not_lost(
        self, store: Store, reopen: Callable[[], Store]
    ) -> None:
        put(store, make(1, 50_000))
        save(store, 1)
        change(store, got(store, "i1"), payload=b"1")
        assert got(store, "i1").payload == b"1"
        change(store, got(store, "i1"), payload=b"2")
        save(store, 2)
        assert got(store, "i1").payload == b"2"
        assert got(reopen(), "i1").payload == b"2"

    # Keys.

    def test_a_key_is_found_wherever_its_intent_is(self, store: Store, reopen: Callable[[], Store]) -> None:
        put(store, make(1, 50_000, key="k"))
        save(store)
        found = store.by_key("k")
        assert found is not None and found.id == "i1"
        again = reopen().by_key("k")
        assert again is not None and text(again) == text(found)

    def test_a_key_names_the_newest(self, store: Store, reopen: Callable[[], Store]) -> None:
        put(store, make(1, 50_000, key="k"))
        save(store, 1)
        put(store, make(2, 40_000, key="k"))
        for step in range(2):
            found = store.by_key("k")
            assert found is not None and found.id == "i2"
            save(store, 2 + step)
        found = reopen().by_key("k")
        assert found is not None and found.id == "i2"

    def test_a_key_names_the_newest_also_when_the_older_one_comes_into_memory(self, store: Store) -> None:
        put(store, make(1, 20_000, key="k"), make(2, 90_000, key="k"))
        save(store)
        assert ids(store.window(30_000, 10)) == ["i1"]
        found = store.by_key("k")
        assert found is not None and found.id == "i2"

    @pytest.mark.parametrize("saved", [False, True])
    def test_a_key_does_not_name_another_intent_that_got_the_old_id(self, store: Store, saved: bool) -> None:
        put(store, make(1, key="k"))
        end(store, got(store, "i1"), 1, 2_000)
        if saved:
            save(store)
        store.forget(Marks(finished_before_ms=3_000, key_before_ms=3_000))
        put(store, make(2, 50_000, id="i1"))
        assert store.by_key("k") is None
        assert got(store, "i1").seq == 2

    # The window.

    def test_the_window_is_in_the_order_of_wake_and_then_of_acceptance(self, store: Store) -> None:
        wakes = [500, 300, 500, 100, 300, 900]
        put(store, *(make(seq, wake) for seq, wake in enumerate(wakes, 1)))
        assert ids(store.window(500, 10)) == ["i4", "i2", "i5", "i1", "i3"]
        assert store.edge == (500, SEQ_MAX)
        assert ids(store.window(900, 10)) == ["i6"]

    @pytest.mark.parametrize("saved", [False, True])
    @pytest.mark.parametrize("limit", [1, 7, 100, 101])
    def test_many_of_one_millisecond_come_page_by_page_and_each_once(
        self, store: Store, limit: int, saved: bool
    ) -> None:
        put(store, *(make(seq, 500) for seq in range(100, 0, -1)))
        if saved:
            save(store)
        found: list[str] = []
        while store.edge < (500, SEQ_MAX):
            page = store.window(500, limit)
            assert all((i.wake_at_ms, i.seq) <= store.edge for i in page)
            found += ids(page)
        assert found == [f"i{seq}" for seq in range(1, 101)]
        assert store.window(500, limit) == []

    def test_between_two_pages_nothing_falls_through(self, store: Store) -> None:
        put(store, *(make(seq, 500) for seq in range(1, 6)))
        save(store)
        first = ids(store.window(600, 2))
        put(store, make(6, 500), make(7, 550))
        change(store, got(store, "i4"), wake_at_ms=590)
        rest: list[str] = []
        while store.edge < (600, SEQ_MAX):
            rest += ids(store.window(600, 2))
        assert sorted(first + rest) == [f"i{seq}" for seq in range(1, 8)]

    def test_what_came_once_does_not_come_again(self, store: Store) -> None:
        put(store, make(1, 100), make(2, 200))
        assert ids(store.window(150, 10)) == ["i1"]
        assert store.window(150, 10) == []
        assert store.window(10, 10) == []
        assert store.edge == (150, SEQ_MAX), "the edge does not go back"
        assert ids(store.window(200, 10)) == ["i2"]

    def test_what_does_not_wake_does_not_come(self, store: Store) -> None:
        put(store, make(1, 100), make(2, 0, status=DUE), make(3, 100))
        save(store)
        end(store, got(store, "i1"), 1, 50)
        change(store, got(store, "i3"), wake_at_ms=0)
        assert store.window(NEVER, 10) == []

    def test_the_window_sees_what_is_newer_than_the_disk(self, store: Store) -> None:
        put(store, make(1, 9_000), make(2, 100), make(3, 8_000))
        save(store)
        change(store, got(store, "i1"), wake_at_ms=100)
        change(store, got(store, "i2"), wake_at_ms=9_000)
        put(store, make(4, 50))
        assert ids(store.window(200, 10)) == ["i4", "i1"]
        assert ids(store.window(NEVER, 10)) == ["i3", "i2"]

    def test_the_window_brings_the_living_object(self, store: Store) -> None:
        put(store, make(1, 100))
        save(store)
        (intent,) = store.window(100, 10)
        assert store.get("i1") is intent
        change(store, intent, payload=b"x")
        save(store, 2)
        assert store.get("i1") is intent, "it wakes within the edge, so the kernel holds it"

    def test_the_first_wake_behind_the_edge_is_known(self, store: Store) -> None:
        put(store, make(1, 300), make(2, 200), make(3, 900))
        assert store.next_wake() == 200
        save(store)
        assert store.next_wake() == 200
        store.window(250, 10)
        assert store.next_wake() == 300
        change(store, got(store, "i3"), wake_at_ms=260)
        assert store.next_wake() == 260
        store.window(NEVER, 10)
        assert store.next_wake() is None

    # Held intents.

    def test_what_is_under_way_is_held_after_reopening(
        self, store: Store, reopen: Callable[[], Store]
    ) -> None:
        put(store, make(1, 100), make(2, status=DUE), make(3, 900, holds=True), make(4, status=DISPATCHING))
        put(store, make(5, status=DUE))
        end(store, got(store, "i5"), 1, 50)
        save(store)
        again = reopen()
        again.load()
        held = list(again.held())
        assert ids(held) == ["i2", "i3", "i4"]
        assert all(again.get(intent.id) is intent for intent in held)

    # Pages.

    @pytest.mark.parametrize("saved", [0, 1, 2])
    def test_pages_are_by_falling_number_and_filtered(self, store: Store, saved: int) -> None:
        for seq in range(1, 21):
            put(store, make(seq, 90_000 + seq, terms=OTHER if seq % 2 else TERMS))
            if seq == 10 and saved:
                save(store, 1)
        for seq in (3, 4, 15):
            end(store, got(store, f"i{seq}"), seq, 100, CANCELED)
        if saved == 2:
            save(store, 2)

        def page(before: int, limit: int, **filters: Any) -> list[int]:
            found = store.page(filters.get("statuses"), filters.get("lane"), before, limit)
            return [intent.seq for intent in found]

        assert page(SEQ_MAX, 5) == [20, 19, 18, 17, 16]
        assert page(16, 5) == [15, 14, 13, 12, 11]
        assert page(3, 5) == [2, 1]
        assert page(SEQ_MAX, 99, statuses=(CANCELED,)) == [15, 4, 3]
        assert page(SEQ_MAX, 99, statuses=(CANCELED, SCHEDULED)) == list(range(20, 0, -1))
        assert page(SEQ_MAX, 99, statuses=()) == []
        assert page(SEQ_MAX, 3, lane="task:other") == [19, 17, 15]
        assert page(19, 9, lane="task:other", statuses=(SCHEDULED,)) == [17, 13, 11, 9, 7, 5, 1]
        assert page(SEQ_MAX, 9, lane="nowhere") == []

    # Forgetting.

    @pytest.mark.parametrize("saved", [False, True])
    def test_what_is_below_the_marks_is_gone_at_once(self, store: Store, saved: bool) -> None:
        put(store, *(make(seq, 90_000, key=f"k{seq}" if seq == 4 else None) for seq in range(1, 7)))
        for seq, status in ((1, ACKED), (2, CANCELED), (3, DEAD_LETTERED), (4, ACKED), (5, ACKED)):
            end(store, got(store, f"i{seq}"), seq, 2_000 + (seq == 5) * 5_000, status)
        if saved:
            save(store)
        store.forget(Marks(finished_before_ms=3_000, dead_before_ms=1_500, key_before_ms=500))
        gone = [seq for seq in range(1, 7) if store.get(f"i{seq}") is None]
        assert gone == [1, 2]
        assert [intent.seq for intent in store.page(None, None, SEQ_MAX, 99)] == [6, 5, 4, 3]
        assert store.by_key("k4") is not None
        store.forget(Marks(finished_before_ms=3_000, dead_before_ms=3_000, key_before_ms=1_001))
        assert [seq for seq in range(1, 7) if store.get(f"i{seq}") is None] == [1, 2, 3, 4]
        assert store.by_key("k4") is None

    def test_marks_by_count_hide_the_first_that_ended(self, store: Store) -> None:
        put(store, *(make(seq) for seq in range(1, 11)))
        for seq in range(1, 11):
            end(store, got(store, f"i{seq}"), 11 - seq, 9_999)
        store.forget(Marks(ended_to=4))
        assert [seq for seq in range(1, 11) if store.get(f"i{seq}") is None] == [7, 8, 9, 10]

    def test_a_page_is_full_although_newer_ones_are_forgotten(self, store: Store) -> None:
        put(store, *(make(seq, 90_000) for seq in range(1, 21)))
        for seq in range(11, 21):
            end(store, got(store, f"i{seq}"), seq, 2_000)
        save(store)
        store.forget(Marks(finished_before_ms=3_000))
        found = store.page(None, None, SEQ_MAX, 5)
        assert [intent.seq for intent in found] == [10, 9, 8, 7, 6]

    def test_forgotten_stays_forgotten_after_reopening(
        self, store: Store, reopen: Callable[[], Store]
    ) -> None:
        put(store, make(1), make(2))
        end(store, got(store, "i1"), 1, 2_000)
        marks = Marks(finished_before_ms=3_000)
        store.forget(marks)
        save(store, 1, marks)
        again = reopen()
        again.load()
        assert again.get("i1") is None
        assert ids(again.page(None, None, SEQ_MAX, 9)) == ["i2"]

    def test_a_forgotten_id_can_be_used_again(self, store: Store, reopen: Callable[[], Store]) -> None:
        put(store, make(1))
        end(store, got(store, "i1"), 1, 2_000)
        save(store, 1)
        marks = Marks(finished_before_ms=3_000)
        store.forget(marks)
        assert store.get("i1") is None
        put(store, make(2, 50_000, id="i1", payload=b"new"))
        save(store, 2, marks)
        again = reopen()
        again.load()
        assert got(again, "i1").payload == b"new"
        assert [intent.seq for intent in again.page(None, None, SEQ_MAX, 9)] == [2]
