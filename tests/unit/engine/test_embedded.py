"""What an App in this process finds: all that fits, and the loop goes on meanwhile."""

from __future__ import annotations

import pytest

from duetime import App
from duetime.engine.embedded import Embedded
from duetime.engine.reads import library
from duetime.errors import Closed
from duetime.protocol.command import Cancel
from duetime.protocol.filter import Filter
from duetime.protocol.intent import ACKED, CANCELED, DISPATCHING, SCHEDULED
from duetime.protocol.terms import Task
from duetime.store import archive
from duetime.store.store import SEQ_MAX
from tests.unit.insight.rig import World, run, turns_of, world

HOUR = 3_600_000


async def fill(w: World) -> None:
    """A few of one queue far apart, behind many others; the newest in memory only."""
    await w.many("rare", 3, HOUR, target=Task("work", "rare"))
    await w.many("ran", 40)
    await w.end()
    await w.many("old", 100, HOUR)
    await w.engine.checkpoint()
    await w.engine.ask(Cancel("old7"))
    await w.many("new", 20, HOUR)
    await w.many("out", 5)


def test_a_find_is_filled_however_far_apart_the_intents_are(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "ARCHIVE_ROWS_MAX", 8)
    monkeypatch.setattr(library, "SEARCH_MAX", 4)

    async def main():
        async with world(tmp_path) as w:
            await fill(w)
            backend = Embedded(w.engine)
            for statuses in ((), (SCHEDULED,), (ACKED,), (CANCELED,), (DISPATCHING, CANCELED)):
                for queue in (None, "rare", "default", "none"):
                    for before in (None, "new2", "rare2"):
                        for limit in (1, 4, 50, 1_000):
                            lane = None if queue is None else f"task:{queue}"
                            last = None if before is None else w.store.get(before)
                            before_seq = SEQ_MAX if last is None else last.seq
                            page = w.store.page(statuses or None, lane, before_seq, limit)
                            found = await backend.page(Filter(statuses, queue=queue), before, limit)
                            assert [each.intent_id for each in found] == [intent.id for intent in page]

    run(main())


def test_others_have_their_turn_while_intents_are_looked_for(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await fill(w)
            backend = Embedded(w.engine)
            turns, found = await turns_of(backend.page(Filter((ACKED,), queue="default"), None, 100))
            assert len(found) == 40
            assert turns > 2, "it was read on the loop"

    run(main())


def test_without_a_disk_intents_are_found_in_memory():
    app = App(":memory:")

    @app.task
    async def work(number: int) -> None:
        """Never run here."""

    async def main():
        async with app:
            await work.delay("1h").schedule_many((number,) for number in range(30))
            assert len(await app.find(status="scheduled", queue="default", limit=20)) == 20
            assert await app.find(status="acked") == []
            backend = app.backend
        with pytest.raises(Closed):
            await backend.page(Filter(), None, 20)

    run(main())
