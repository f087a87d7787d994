"""When a checkpoint is tried again."""

from __future__ import annotations

from duetime.engine import checkpointer
from duetime.errors import NoSpace
from tests.unit.insight.rig import run, world


def test_without_room_it_is_tried_again_after_a_while_and_not_after_every_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointer, "CHECKPOINT_BYTES", 1)
    tries: list[object] = []

    def full(checkpoint):
        tries.append(checkpoint)
        raise NoSpace("no room")

    async def main():
        async with world(tmp_path, checkpoint_ms=3_600_000) as w:
            await w.engine._checkpointer.now()
            with monkeypatch.context() as patched:
                patched.setattr(w.store, "checkpoint", full)
                for number in range(5):
                    await w.many(f"i{number}", 1, in_ms=60_000)
                    await w.engine._checkpointer._finished()
            assert len(tries) == 1
            before = w.engine._checkpointer.count
            await w.engine._checkpointer.now()
            assert w.engine._checkpointer.count == before + 1, "whoever asks for one gets it"

    run(main())
