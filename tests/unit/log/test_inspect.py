"""Looking at the files from outside, sound and damaged, at rest and in use."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from duetime.errors import Damaged
from duetime.log.file import FileLog
from duetime.log.inspect import Damage, Look, SegmentInfo, scan, segments, verify
from duetime.log.segment import segment_name
from duetime.testing.contracts.log import append_all, frame
from duetime.testing.disk import FaultyDisk
from tests.torture.log_script import run_now

BODIES = [b"a" * 400, b"b" * 400, b"c" * 400, b"d" * 400, b"e" * 400]
FIRSTS = [0, 940, 1_880]


@pytest.fixture
def disk() -> FaultyDisk:
    """Five frames in three segments."""
    disk = FaultyDisk()
    log = FileLog("log", disk=disk, segment_bytes_max=1_000, allocate_bytes=900)
    run_now(log.open())
    run_now(append_all(log, BODIES))
    run_now(log.close())
    return disk


def flip(disk: FaultyDisk, first: int, offset: int) -> None:
    path = f"log/{segment_name(first)}"
    data = bytearray(disk.contents()[path])
    data[offset] ^= 1
    disk.put(path, bytes(data))


def bodies(disk: FaultyDisk, start: int | None = None) -> list[bytes]:
    return [found.body for _, found in scan("log", start, disk)]


def test_segments_are_listed_with_what_they_hold(disk: FaultyDisk) -> None:
    assert segments("log", disk) == [
        SegmentInfo(segment_name(0), 0, 940, 972, 2, sealed=True),
        SegmentInfo(segment_name(940), 940, 1_880, 972, 2, sealed=True),
        SegmentInfo(segment_name(1_880), 1_880, 2_350, 900, 1, sealed=False),
    ]


def test_a_sound_log_is_read_from_anywhere_and_has_no_damage(disk: FaultyDisk) -> None:
    assert bodies(disk) == BODIES
    for index, start in enumerate([0, 470, 940, 1_410, 1_880, 2_350]):
        assert bodies(disk, start) == BODIES[index:]
    assert [found for _, found in scan("log", 1_880, disk)] == [frame(BODIES[4])]
    assert verify("log", disk) == []


def test_segments_are_read_beside_the_open_log(tmp_path: Path) -> None:
    async def work() -> None:
        log = FileLog(tmp_path, segment_bytes_max=1_000)
        await log.open()
        for count, body in enumerate(BODIES, start=1):
            await append_all(log, [body])
            assert [found.body for _, found in scan(tmp_path)] == BODIES[:count]
            assert sum(each.frames for each in segments(tmp_path)) == count
            assert verify(tmp_path) == []
        await log.close()

    asyncio.run(work())


def test_every_damaged_place_is_named(disk: FaultyDisk) -> None:
    flip(disk, 0, 3)
    flip(disk, 0, 100)
    flip(disk, 940, 510)
    flip(disk, 1_880, 600 - 300)
    assert [(each.file, each.offset) for each in verify("log", disk)] == [
        (segment_name(0), 0),
        (segment_name(0), 32),
        (segment_name(940), 502),
        (segment_name(1_880), 32),
    ]
    with pytest.raises(Damaged, match=f"{segment_name(0)} at 0"):
        bodies(disk)
    with pytest.raises(Damaged, match=f"{segment_name(940)} at 502"):
        bodies(disk, 940)
    with pytest.raises(Damaged, match=f"{segment_name(1_880)} at 32"):
        bodies(disk, 1_880)
    assert [each.frames for each in segments("log", disk)] == [0, 1, 0]


def test_a_torn_tail_is_no_damage(disk: FaultyDisk) -> None:
    path = f"log/{segment_name(1_880)}"
    disk.put(path, disk.contents()[path][:200])
    disk.forget("log/synced")
    assert verify("log", disk) == []
    assert bodies(disk) == BODIES[:4]
    disk.put(path, disk.contents()[path][:20])
    assert verify("log", disk) == []
    assert bodies(disk) == BODIES[:4]


def test_a_tail_that_ends_below_the_mark_is_damage(disk: FaultyDisk) -> None:
    path = f"log/{segment_name(1_880)}"
    disk.put(path, disk.contents()[path][:32])
    (damage,) = verify("log", disk)
    assert (damage.file, damage.offset) == (segment_name(1_880), 32)
    assert "synced up to 2350" in damage.what


def test_missing_segments_are_damage(disk: FaultyDisk) -> None:
    disk.forget(f"log/{segment_name(940)}")
    assert [(each.file, each.offset) for each in verify("log", disk)] == [(segment_name(0), 972)]
    for first in (0, 1_880):
        disk.forget(f"log/{segment_name(first)}")
    assert verify("log", disk) == [Damage("", 0, "The log was synced up to 2350, but no segment is here.")]
    disk.forget("log/synced")
    assert verify("log", disk) == []
    assert bodies(disk) == []


def test_a_bad_header_of_the_newest_is_damage(disk: FaultyDisk) -> None:
    flip(disk, 1_880, 10)
    assert [(each.file, each.offset) for each in verify("log", disk)] == [(segment_name(1_880), 0)]


def test_an_unreadable_segment_is_damage(disk: FaultyDisk) -> None:
    for number in range(1, 60):
        disk.errors = {len(disk.operations) + number: errno.EIO}
        before = len(disk.operations)
        try:
            damages = verify("log", disk)
        except OSError:
            # Not a segment's bytes but the folder or a file's size: the caller's to explain.
            assert disk.operations[-1] in ("names", "size", "open_to_read")
            continue
        if len(disk.operations) - before < number:
            break
        failed = disk.operations[before + number - 1]
        assert failed == "read" or not damages
    assert number > 10


def test_a_segment_trimmed_during_the_look_is_read_all_the_same(disk: FaultyDisk) -> None:
    reading = scan("log", disk=disk)
    assert next(reading)[1].body == BODIES[0]
    disk.forget(f"log/{segment_name(940)}")
    assert [found.body for _, found in reading] == BODIES[1:]


def test_a_segment_trimmed_before_it_is_opened_is_passed_over(
    disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = disk.names

    def trimmed(directory: str) -> list[str]:
        found = names(directory)
        disk.forget(f"log/{segment_name(0)}")
        return found

    monkeypatch.setattr(disk, "names", trimmed)
    assert [each.first for each in segments("log", disk)] == [940, 1_880]
    assert verify("log", disk) == []


def test_of_very_many_segments_only_the_oldest_are_held_open(
    disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duetime.log.inspect.INSPECTED_SEGMENTS_MAX", 1)
    assert bodies(disk) == BODIES
    with Look("log", disk) as look:
        disk.forget(f"log/{segment_name(940)}")
        assert [first for _, first, _ in look.files()] == [0, 1_880]
    assert not disk.open_files()


# Beside a writer.


class Moving(FaultyDisk):
    """A disk on which somebody writes between any two reads of a segment, and during each."""

    def __init__(self) -> None:
        super().__init__()
        self.write_more: Callable[[], None] | None = None
        self.cut_at = 1 << 40

    def read(self, file: int, offset: int, count: int) -> bytes:
        before = super().read(file, offset, count)
        if self.write_more is None or count < 100:
            return before
        self.write_more()
        # A read is not one moment: what it gives further behind is younger.
        after = super().read(file, offset, count)
        place = max(0, self.cut_at - offset)
        return (before[:place] + after[place:])[: len(before)]


def moving(cut_at: int = 1 << 40) -> tuple[Moving, FileLog]:
    """A log with three frames, to which one is appended and synced with each read."""
    disk = Moving()
    log = FileLog("log", disk=disk, segment_bytes_max=100_000, allocate_bytes=90_000)
    run_now(log.open())
    run_now(append_all(log, BODIES[:3]))
    run_now(log.sync())

    def write_more() -> None:
        disk.write_more = None
        run_now(append_all(log, [b"more" * 100]))
        run_now(log.sync())
        disk.write_more = write_more

    disk.write_more, disk.cut_at = write_more, cut_at
    return disk, log


@pytest.mark.parametrize("cut_at", [1 << 40, 0, 1_442, 1_500, 1_542, 1_700, 1_911])
def test_frames_written_during_a_scan_are_not_damage(cut_at: int) -> None:
    """Three frames end at 1,442; the fourth, which comes during the first read, at 1,912."""
    disk, _ = moving(cut_at)
    assert verify("log", disk) == []
    disk, _ = moving(cut_at)
    assert bodies(disk)[:3] == BODIES[:3]
    disk, _ = moving(cut_at)
    (info,) = segments("log", disk)
    assert info.frames >= 3
    found = [position for position, _ in scan("log", disk=disk, until=info.last)]
    assert len(found) == info.frames


@pytest.mark.parametrize("offset", [100, 1_100, 1_440])
def test_damage_is_found_beside_a_writer(offset: int) -> None:
    disk, _ = moving()
    path = f"log/{segment_name(0)}"
    disk.flip(path, offset)
    (damage,) = verify("log", disk)
    assert damage.offset <= offset < damage.offset + 470
    with pytest.raises(Damaged, match=f"at {damage.offset}"):
        bodies(disk)


def test_a_scan_ends_where_an_earlier_look_did(disk: FaultyDisk) -> None:
    found = [(position, each.body) for position, each in scan("log", disk=disk, until=1_410)]
    assert found == [(0, BODIES[0]), (470, BODIES[1]), (940, BODIES[2])]
    assert [position for position, _ in scan("log", disk=disk, until=940)] == [0, 470]


def test_a_look_that_cannot_open_a_segment_holds_nothing(disk: FaultyDisk) -> None:
    opened = [number for number in range(1, 9) if _opens(disk, number)]
    assert opened == [4, 5, 6], "the mark, the names, then three segments"
    assert not disk.open_files()


def _opens(disk: FaultyDisk, number: int) -> bool:
    """Whether the look fails as the system does when its n-th operation wants for files."""
    disk.errors = {len(disk.operations) + number: errno.EMFILE}
    try:
        Look("log", disk).close()
    except OSError:
        return disk.operations[-1] == "open_to_read"
    finally:
        disk.errors = {}
    return False


def test_a_disk_that_fails_for_good_is_named_once_for_each_segment(
    disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Look("log", disk) as look:
        assert [each.first for each in segments(look)] == FIRSTS

        def failing(file: int, offset: int, count: int) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(disk, "read", failing)
        damages = verify(look)
        assert {each.file for each in damages} == {segment_name(first) for first in FIRSTS}
