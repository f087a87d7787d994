"""Submits of many intents that do not fit one frame: many terms, large payloads, and a disk that fills."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import Any

import pytest

from duetime import App, errors
from duetime.errors import NoSpace
from duetime.log.disk import RealDisk
from duetime.protocol.intent import Intent, Item
from duetime.protocol.terms import AckLevel, Stream, Terms
from tests.integration.rig import WatchedDisk, engine_of, on_disk
from tests.unit.insight.rig import turns_of

FAR_MS = 9_000_000_000_000


def stream(number: int, **more: object) -> Terms:
    return Terms(Stream("s"), "stream:s", tags={"number": str(number)}, **more)  # type: ignore[arg-type]


def test_each_intent_on_terms_of_its_own(tmp_path):
    """The terms together are larger than a frame; none of the intents is."""
    terms = tuple(stream(number, shard_key="x" * 200) for number in range(5_000))
    items = tuple(Item(f"i{number}", number, FAR_MS) for number in range(5_000))

    async def main() -> None:
        async with App(str(tmp_path / "data")) as app:
            replies = await engine_of(app).submit(terms, items, AckLevel.DURABLE)
            made = [reply.id for reply in replies if type(reply) is Intent]
            assert made == [item.id for item in items]
            for number in (0, 1_234, 4_999):
                found = engine_of(app).reads.get(f"i{number}")
                assert found is not None and found.terms == terms[number]

    asyncio.run(main())


class BigWritesDisk(WatchedDisk):
    """Watches the large writes only: how many small ones come in between depends on the machine."""

    def write(self, file, offset, parts):
        large = sum(map(len, parts)) > 100_000
        return super().write(file, offset, parts) if large else RealDisk.write(self, file, offset, parts)

    def allocate(self, file, size, size_new):
        RealDisk.allocate(self, file, size, size_new)


@pytest.mark.parametrize("room_for", [0, 1, 2])
def test_a_disk_that_fills_in_the_middle(tmp_path, monkeypatch, room_for):
    """FLAWS 14: what is on the log is answered as taken, and only the rest as refused."""
    disk = BigWritesDisk()
    on_disk(monkeypatch, disk, allocate_bytes=4096)
    app = App(str(tmp_path / "data"))
    items = tuple(Item(f"i{number}", 0, FAR_MS, b'"%b"' % (b"x" * 150_000)) for number in range(8))

    async def main() -> None:
        async with app:
            left = room_for

            def fills() -> None:
                nonlocal left
                if left <= 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                left -= 1

            disk.before_write = fills
            engine = engine_of(app)
            if not room_for:
                with pytest.raises(errors.NoSpace):
                    await engine.submit((stream(1),), items, AckLevel.DURABLE)
                disk.before_write = lambda: None
                assert all(engine.reads.get(item.id) is None for item in items)
                return
            replies = await engine.submit((stream(1),), items, AckLevel.DURABLE)
            disk.before_write = lambda: None
            taken = [item.id for item, reply in zip(items, replies, strict=True) if type(reply) is Intent]
            refused = [item.id for item, reply in zip(items, replies, strict=True) if type(reply) is NoSpace]
            assert taken and refused and len(taken) + len(refused) == 8
            assert all(engine.reads.get(id) is not None for id in taken)
            assert all(engine.reads.get(id) is None for id in refused)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_others_have_their_turn_while_many_calls_are_made_ready():
    app = App(":memory:")

    @app.task
    async def work(number: int) -> None:
        """Never run here."""

    async def many() -> list[Any]:
        return await work.delay("1h").schedule_many((number,) for number in range(25_000))

    async def main():
        async with app:
            turns, made = await turns_of(many())
            assert len(made) == 25_000
            assert turns >= 50, "each slice of calls is a turn of its own"

    asyncio.run(main())
