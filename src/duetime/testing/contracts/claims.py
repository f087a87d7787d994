"""The store's contract for claims: `by_claim` finds the holder in memory and on disk."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from duetime.protocol.checkpoint import Marks
from duetime.protocol.intent import ACKED, CANCELED, DEAD_LETTERED, DISPATCHING, SCHEDULED
from duetime.protocol.terms import Claim, Until
from duetime.store.store import Store
from duetime.testing.contracts.checkpoint import CheckpointContract
from duetime.testing.contracts.store_tools import change, end, got, ids, make, put, save, text

_END = Claim("k", Until.END)
_START = Claim("k", Until.START)
_TIME = Claim("k", Until.TIME, 1_000)
_WAITS = Claim("k", Until.DEBOUNCE)


class ClaimContract(CheckpointContract):
    """What `by_claim` must find, and what it must not."""

    @pytest.mark.parametrize("claim", [_START, _END, _TIME, _WAITS])
    def test_a_claim_is_found_wherever_its_intent_is(
        self, store: Store, reopen: Callable[[], Store], claim: Claim
    ) -> None:
        intent = make(1, 50_000, claim=claim)
        put(store, intent)
        assert store.by_claim(claim.name) is intent
        assert store.by_claim("k") is store.by_key("k") is None
        save(store)
        found = store.by_claim(claim.name)
        assert found is not None and found.id == "i1"
        again = reopen().by_claim(claim.name)
        assert again is not None and text(again) == text(found)

    @pytest.mark.parametrize("saved", ["never", "before", "after"])
    @pytest.mark.parametrize(
        ("claim", "changes", "kept"),
        [
            (_END, {"status": DISPATCHING, "delivery": 1}, True),
            (_END, {"status": SCHEDULED, "delivery": 1}, True),
            (_END, {"status": ACKED, "ended": 1, "wake_at_ms": 0}, False),
            (_START, {"status": DISPATCHING, "delivery": 1}, False),
            (_START, {"status": CANCELED, "ended": 1, "wake_at_ms": 0}, False),
            (_WAITS, {"status": SCHEDULED, "delivery": 1}, False),
            (_WAITS, {"status": DEAD_LETTERED, "ended": 1, "wake_at_ms": 0}, False),
            (_TIME, {"status": ACKED, "ended": 1, "wake_at_ms": 0, "finished_at_ms": 5_000}, True),
        ],
    )
    def test_a_claim_goes_with_the_life_of_its_intent(
        self, store: Store, claim: Claim, changes: dict[str, object], kept: bool, saved: str
    ) -> None:
        put(store, make(1, 50_000, claim=claim))
        if saved == "before":
            save(store, 1)
        change(store, got(store, "i1"), **changes)
        if saved == "after":
            save(store, 2)
        assert (store.by_claim(claim.name) is not None) is kept

    def test_a_claim_names_the_newest_that_has_it(self, store: Store, reopen: Callable[[], Store]) -> None:
        put(store, make(1, 50_000, claim=_TIME))
        save(store, 1)
        put(store, make(2, 40_000, claim=_TIME))
        change(store, got(store, "i1"), payload=b"touched after the newer one was there")
        for step in range(3):
            found = store.by_claim(_TIME.name)
            assert found is not None and found.id == "i2"
            save(store, 2 + step)
        found = reopen().by_claim(_TIME.name)
        assert found is not None and found.id == "i2"

    def test_a_claim_names_the_newest_also_when_the_older_one_comes_into_memory(self, store: Store) -> None:
        put(store, make(1, 20_000, claim=_TIME), make(2, 90_000, claim=_TIME))
        save(store)
        assert ids(store.window(30_000, 10)) == ["i1"]
        change(store, got(store, "i1"), payload=b"x")
        found = store.by_claim(_TIME.name)
        assert found is not None and found.id == "i2"

    @pytest.mark.parametrize("saved", [False, True])
    def test_a_revived_one_has_its_claim_again(
        self, store: Store, reopen: Callable[[], Store], saved: bool
    ) -> None:
        put(store, make(1, 50_000, claim=_END))
        end(store, got(store, "i1"), 1, 2_000, DEAD_LETTERED)
        assert store.by_claim(_END.name) is None
        if saved:
            save(store, 1)
        change(store, got(store, "i1"), status=SCHEDULED, ended=0, finished_at_ms=0, wake_at_ms=60_000)
        assert store.by_claim(_END.name) is got(store, "i1")
        save(store, 2)
        assert reopen().by_claim(_END.name) is not None

    @pytest.mark.parametrize("saved", [False, True])
    def test_a_claim_for_a_time_is_kept_as_long_as_keys_are(self, store: Store, saved: bool) -> None:
        put(store, make(1, claim=_TIME), make(2, claim=_END))
        for seq in (1, 2):
            end(store, got(store, f"i{seq}"), seq, 2_000)
        if saved:
            save(store)
        store.forget(Marks(finished_before_ms=3_000, key_before_ms=1_000))
        assert store.get("i1") is not None and store.by_claim(_TIME.name) is not None
        assert store.get("i2") is None
        store.forget(Marks(finished_before_ms=3_000, key_before_ms=1_001))
        assert store.get("i1") is None and store.by_claim(_TIME.name) is None

    @pytest.mark.parametrize("saved", [False, True])
    def test_the_older_one_is_found_when_the_newer_is_forgotten(self, store: Store, saved: bool) -> None:
        put(store, make(1, claim=_TIME, created_at_ms=5_000), make(2, claim=_TIME, created_at_ms=1_000))
        for seq in (1, 2):
            end(store, got(store, f"i{seq}"), seq, 2_000)
        if saved:
            save(store)
        store.forget(Marks(finished_before_ms=3_000, key_before_ms=4_000))
        found = store.by_claim(_TIME.name)
        assert found is not None and found.id == "i1"

    @pytest.mark.parametrize("saved", [False, True])
    def test_a_claim_does_not_name_another_intent_that_got_the_old_id(
        self, store: Store, saved: bool
    ) -> None:
        put(store, make(1, claim=_TIME))
        end(store, got(store, "i1"), 1, 2_000)
        if saved:
            save(store)
        store.forget(Marks(finished_before_ms=3_000, key_before_ms=3_000))
        put(store, make(2, 50_000, id="i1"))
        assert store.by_claim(_TIME.name) is None
