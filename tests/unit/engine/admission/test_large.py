"""Large payloads in memory are bounded in bytes; small ones are not held up by them."""

from __future__ import annotations

import pytest

from duetime.engine.admission import guard
from duetime.errors import Busy
from duetime.limits import LARGE_PAYLOAD_BYTES
from duetime.protocol.command import Cancel, Patch, Revive
from duetime.protocol.intent import Item
from duetime.protocol.outcome import Rejected
from duetime.protocol.terms import Stream
from tests.unit.insight.rig import World, run, world

HOUR = 3_600_000
LARGE = b'"' + b"x" * 10_000 + b'"'
NOBODY = Stream("nobody")


async def submit(w: World, id: str, payload: bytes = LARGE, in_ms: int = 0) -> None:
    await w.submit(Item(id, 0, w.clock.now_ms() + in_ms, payload), target=NOBODY)


def test_beyond_the_limit_no_large_payload_is_taken_until_some_are_gone(tmp_path, monkeypatch):
    monkeypatch.setattr(guard, "LARGE_PAYLOADS_BYTES_MAX", 25_000)

    async def main():
        async with world(tmp_path) as w:
            await submit(w, "a")
            await submit(w, "b")
            with pytest.raises(Busy, match="exceed the limit of 25000") as refused:
                await submit(w, "c")
            assert refused.value.code == 42900 and refused.value.details["waitMs"] == 1000
            with pytest.raises(Busy):
                items = [Item(f"m{number}", 0, w.clock.now_ms(), LARGE) for number in range(2)]
                await w.submit(*items, target=NOBODY)
            await submit(w, "small", b"x" * (LARGE_PAYLOAD_BYTES - 1))
            await w.engine.checkpoint()
            with pytest.raises(Busy):
                await submit(w, "c")  # they are due: a checkpoint does not free them
            await w.engine.ask(Cancel("a"))
            await w.engine.checkpoint()
            await submit(w, "c")

    run(main())


def test_far_intents_cost_memory_only_until_the_next_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(guard, "LARGE_PAYLOADS_BYTES_MAX", 15_000)

    async def main():
        async with world(tmp_path) as w:
            store = w.engine.store
            for number in range(5):
                await submit(w, f"far{number}", in_ms=HOUR)
                assert store.large_bytes() == len(LARGE)
                await w.engine.checkpoint()
                assert store.large_bytes() == 0

    run(main())


def test_a_payload_that_was_patched_is_counted_as_it_is(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            store = w.engine.store
            await submit(w, "a", in_ms=HOUR)
            await w.engine.ask(Patch("a", payload=b"1"))
            await w.engine.checkpoint()
            assert store.large_bytes() == 0

    run(main())


def test_a_payload_that_is_put_in_the_place_of_another_counts_as_a_new_one(tmp_path, monkeypatch):
    monkeypatch.setattr(guard, "LARGE_PAYLOADS_BYTES_MAX", 25_000)

    async def main():
        async with world(tmp_path) as w:
            store = w.engine.store
            for id in "abc":
                await submit(w, id, b"1")
            await w.submit(Item("d", 0, w.clock.now_ms()))
            await w.end(Rejected("no", "never"))
            await w.engine.ask(Patch("a", payload=LARGE))
            assert store.large_bytes() == len(LARGE)
            await w.engine.ask(Patch("b", payload=LARGE))
            with pytest.raises(Busy, match="exceed the limit of 25000"):
                await w.engine.ask(Patch("c", payload=LARGE))
            await w.engine.ask(Patch("c", payload=b"2"))
            with pytest.raises(Busy):
                await w.engine.ask(Revive("d", payload=LARGE))
            await w.engine.ask(Cancel("a"))
            await w.engine.checkpoint()
            await w.engine.ask(Revive("d", payload=LARGE))
            assert store.large_bytes() == 2 * len(LARGE)

    run(main())


def test_a_payload_above_the_limit_is_accepted_if_no_other_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr(guard, "LARGE_PAYLOADS_BYTES_MAX", 5_000)

    async def main():
        async with world(tmp_path) as w:
            await submit(w, "a")
            with pytest.raises(Busy):
                await submit(w, "b")

    run(main())
