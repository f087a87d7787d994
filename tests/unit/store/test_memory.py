"""The reference store's own corners."""

from __future__ import annotations

from duetime.protocol.checkpoint import Marks
from duetime.store.memory import MemoryStore
from duetime.testing.contracts.store_tools import end, got, make, moment, put, save


def test_without_durability_a_checkpoint_does_nothing():
    store = MemoryStore()
    put(store, make(1, 100))
    assert list(store.checkpoint(moment(1))) == []
    assert store.load() is None
    assert store.reopen().get("i1") is None
    assert store.unwritten() == 0


def test_a_key_finds_an_older_live_intent_after_the_newest_was_purged():
    store = MemoryStore()
    put(store, make(1, 90_000, key="k"), make(2, key="k"), make(3, key="other"))
    end(store, got(store, "i2"), 1, 2_000)
    store.forget(Marks(finished_before_ms=3_000, key_before_ms=3_000))
    found = store.by_key("k")
    assert found is not None and found.id == "i1"


def test_a_forgotten_intent_is_taken_from_the_disk_too():
    store = MemoryStore(durable=True)
    put(store, make(1))
    end(store, got(store, "i1"), 1, 2_000)
    save(store, 1)
    store.forget(Marks(finished_before_ms=3_000))
    save(store, 2)
    assert store.reopen().page(None, None, 99, 9) == []
