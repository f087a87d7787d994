"""The file log where it differs from other logs: its folder, its segments, its thread."""

from __future__ import annotations

import asyncio
import errno
import threading
from pathlib import Path
from random import Random
from zlib import crc32

import pytest

from duetime.errors import Closed, Damaged, Fatal, Held, TooNew
from duetime.log.disk import RealDisk
from duetime.log.file import FileLog
from duetime.log.frame import HEADER_BYTES, decode_header
from duetime.log.segment import segment_header, segment_name
from duetime.testing.contracts.log import append_all, bodies_of, frame
from duetime.testing.disk import Survival
from tests.torture.log_script import run_now
from tests.unit.log.rig import Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_the_folder_is_made_and_reopened_where_it_ended(tmp_path: Path) -> None:
    async def work() -> None:
        for number in range(3):
            log = FileLog(tmp_path / "data" / "log")
            await log.open()
            await append_all(log, [b"%d" % number])
            await log.close()
        log = FileLog(tmp_path / "data" / "log")
        await log.open()
        assert await bodies_of(log) == [b"0", b"1", b"2"]
        await log.close()

    asyncio.run(work())
    assert sorted(path.name for path in (tmp_path / "data" / "log").iterdir()) == [
        segment_name(0),
        "id",
        "lock",
        "synced",
    ]


def test_nothing_works_before_open_and_after_close(rig: Rig) -> None:
    run_now(rig.log.close())
    for log in (rig.log, FileLog("log", disk=rig.disk)):
        with pytest.raises(Closed):
            run_now(log.tail())
        with pytest.raises(Closed):
            run_now(log.append(0, frame(b"")))
        with pytest.raises(Closed):
            log.read(0)
        run_now(log.close())
    run_now(rig.log.open())
    assert rig.bodies() == []


def test_a_second_log_is_kept_out_and_the_first_does_not_notice(rig: Rig) -> None:
    with pytest.raises(Held):
        rig.opened()
    rig.append(b"x")
    assert rig.bodies() == [b"x"]


def test_segments_are_sealed_to_their_frames_and_named_by_their_first_position(rig: Rig) -> None:
    tails = [rig.append(b"x" * 400) for _ in range(5)]
    assert rig.segments() == [f"log/{segment_name(first)}" for first in (0, tails[1], tails[3])]
    assert len(rig.disk.contents()[rig.segments()[0]]) == 32 + tails[1]
    assert rig.bodies() == [b"x" * 400] * 5


def test_a_frame_larger_than_a_segment_has_one_to_itself(rig: Rig) -> None:
    bodies = [b"a", b"b" * 5_000, b"c" * 5_000, b"d"]
    for body in bodies:
        rig.append(body)
    assert len(rig.segments()) == 4
    assert rig.bodies() == bodies


def test_trim_removes_whole_segments_below_and_keeps_the_history() -> None:
    rig = Rig(history_bytes=1_000)
    tails = [rig.append(b"x" * 400) for _ in range(9)]
    run_now(rig.log.trim(tails[7]))
    assert run_now(rig.log.start()) == tails[3]
    run_now(rig.log.close())
    rig.history_bytes = 0
    rig.log = rig.opened()
    run_now(rig.log.trim(tails[7] - 1))
    assert run_now(rig.log.start()) == tails[5]
    run_now(rig.log.trim(tails[7]))
    assert run_now(rig.log.start()) == tails[7]
    assert len(rig.segments()) == 1
    with pytest.raises(Damaged, match="log: 0 is not within the log"):
        run_now(bodies_of(rig.log, 0))


def test_room_is_what_is_free_and_what_is_reserved(rig: Rig) -> None:
    rig.append(b"x")
    rig.disk.capacity_bytes = rig.disk.used_bytes() + 1_000
    assert rig.log.room() == 1_000 + 300 - 32 - 71
    rig.fail_next("free_bytes")
    with pytest.raises(Fatal):
        rig.log.room()


def reopened_with(changes: dict[str, bytes | None]) -> list[bytes]:
    """Five frames in three segments, some files changed or removed, opened again."""
    rig = Rig()
    for _ in range(5):
        rig.append(b"x" * 400)
    run_now(rig.log.close())
    for path, data in changes.items():
        if data is None:
            rig.disk.forget(f"log/{path}")
        else:
            rig.disk.put(f"log/{path}", data)
    return run_now(bodies_of(rig.opened()))


def test_unfinished_segments_and_foreign_files_do_no_harm() -> None:
    changes: dict[str, bytes | None] = {"00000000000000009999.seg.tmp": b"x", "notes.txt": b"y", "7.seg": b""}
    assert reopened_with(changes) == [b"x" * 400] * 5


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({segment_name(940): None}, f"{segment_name(0)} at 972: .* a segment between them may be missing"),
        ({segment_name(1_880): None}, f"{segment_name(940)} at 972: .* synced up to 2350"),
        (dict.fromkeys(map(segment_name, (0, 940, 1_880))), "the log was synced up to 2350, but no segment"),
        ({segment_name(0): b""}, f"{segment_name(0)} at 0: 0 bytes are too few"),
        ({segment_name(1_880): segment_header(0)}, f"{segment_name(1_880)} at 0: the segment says"),
        ({segment_name(1_880): segment_header(1_880)}, f"{segment_name(1_880)} at 32: .* synced up to 2350"),
        ({segment_name(1_880): b""}, f"{segment_name(1_880)} at 0: 0 bytes"),
    ],
)  # fmt: skip
def test_missing_parts_are_damage_with_their_place(changes: dict[str, bytes | None], text: str) -> None:
    with pytest.raises(Damaged, match=text):
        reopened_with(changes)


def test_an_unfinished_newest_segment_is_finished() -> None:
    assert reopened_with({segment_name(1_880): b"", "synced": None}) == [b"x" * 400] * 4


def test_segments_of_a_newer_format_are_not_touched() -> None:
    head = segment_header(1_880)[:11] + b"\2" + segment_header(1_880)[12:-4]
    with pytest.raises(TooNew):
        reopened_with({segment_name(1_880): head + crc32(head).to_bytes(4, "big")})


def test_damage_in_a_sealed_segment_is_found_when_it_is_read(rig: Rig) -> None:
    for _ in range(5):
        rig.append(b"x" * 400)
    path = rig.segments()[1]
    data = bytearray(rig.disk.contents()[path])
    data[600] ^= 1
    rig.disk.put(path, bytes(data))
    with pytest.raises(Damaged, match=f"{path[4:]} at 502: the frame's body"):
        rig.bodies()
    assert run_now(bodies_of(rig.log, 1_880)) == [b"x" * 400]
    rig.disk.forget(path)
    with pytest.raises(Damaged, match=f"{path[4:]} at 0: cannot be opened: No such file"):
        rig.bodies()


class SlowDisk(RealDisk):
    """A real disk whose syncs wait for leave; it tells the loop when one has begun."""

    def __init__(self, error: int | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.begun = asyncio.Event()
        self.leave = threading.Event()
        self.error = error
        self.opened: dict[str, int] = {}
        self.closed: list[int] = []
        self.synced: list[int] = []

    def sync_data(self, file: int) -> None:
        self.loop.call_soon_threadsafe(self.begun.set)
        assert self.leave.wait(10)
        if self.error is not None:
            raise OSError(self.error, "failed")
        self.synced.append(file)
        super().sync_data(file)

    def open(self, path: str, *, create: bool = False) -> int:
        file = self.opened[path] = super().open(path, create=create)
        return file

    def close(self, file: int) -> None:
        self.closed.append(file)
        super().close(file)


def test_appends_and_rotations_continue_during_a_sync(tmp_path: Path) -> None:
    async def work() -> None:
        disk = SlowDisk()
        log = FileLog(tmp_path, disk=disk, segment_bytes_max=1_000)
        await log.open()
        await append_all(log, [b"x" * 400])
        [old] = [file for path, file in disk.opened.items() if ".seg" in path]
        first = asyncio.create_task(log.sync())
        await disk.begun.wait()
        await append_all(log, [b"y" * 400])
        second = asyncio.create_task(log.sync())
        # The task runs up to its wait for the thread, which is busy with the first.
        await asyncio.wait([second], timeout=0)
        await append_all(log, [b"z" * 400])
        assert len(list(tmp_path.glob("*.seg"))) == 2
        assert old not in disk.closed, "the sync under way still needs it"
        disk.leave.set()
        assert await first == 470
        assert await second == 940
        assert old in disk.closed
        assert disk.synced == [old], "the rotation covered the second"
        await log.close()

    asyncio.run(work())


def test_a_sync_that_fails_in_its_thread_stops_the_log_without_a_waiter(tmp_path: Path) -> None:
    async def work() -> None:
        disk = SlowDisk(errno.EIO)
        log = FileLog(tmp_path, disk=disk)
        await log.open()
        await append_all(log, [b"x"])
        waiting = asyncio.create_task(log.sync())
        await disk.begun.wait()
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        disk.leave.set()
        assert log._thread is not None
        log._thread.shutdown()
        with pytest.raises(Fatal, match="stopped"):
            await log.tail()
        disk.error = None
        await log.close()

    asyncio.run(work())


def test_frames_say_how_far_the_log_was_synced_when_they_were_written(rig: Rig) -> None:
    rig.append(b"a")
    tail = run_now(rig.log.sync())
    rig.append(b"b")
    data = rig.disk.contents()[rig.segments()[0]]
    assert [decode_header(data[at : at + HEADER_BYTES], "").synced for at in (32, 32 + 71)] == [0, tail]


def test_an_unsynced_frame_is_synced_when_the_log_is_opened(rig: Rig) -> None:
    rig.append(b"x")
    rig.disk.kill()
    rig.log = rig.opened()
    rig.disk.lose_power()
    rig.disk.restart(Random(1), Survival.NOTHING)
    assert run_now(bodies_of(rig.opened())) == [b"x"]


def test_closing_syncs(rig: Rig) -> None:
    rig.append(b"x")
    run_now(rig.log.close())
    rig.disk.restart(Random(1), Survival.NOTHING)
    assert run_now(bodies_of(rig.opened())) == [b"x"]
