"""Where the log was at a moment: the right frame, in a log of any size, from a few headers."""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_right
from time import perf_counter  # tidy: how long it took, not what time it is

import pytest

from duetime.log.disk import RealDisk
from duetime.log.file import FileLog
from duetime.log.frame import MAGIC, Frame
from duetime.log.time_index import seek, spans


class CountingDisk(RealDisk):
    """Counts what is read."""

    def __init__(self) -> None:
        self.bytes = 0

    def read(self, file: int, offset: int, count: int) -> bytes:
        data = super().read(file, offset, count)
        self.bytes += len(data)
        return data


def written(folder, stamps: list[int], bodies: list[bytes], **options) -> list[int]:
    """A log of these frames; their positions."""

    async def main() -> list[int]:
        log = FileLog(folder, **options)
        await log.open()
        at, positions = 0, []
        for number, (at_ms, body) in enumerate(zip(stamps, bodies, strict=True)):
            positions.append(at)
            at = await log.append(at, Frame(1 + number // 100, number, number * 10 + 1, 10, at_ms, 0, body))
        await log.close()
        return positions

    return asyncio.run(main())


@pytest.mark.parametrize("segment_bytes_max", [600_000, 64 << 20])
def test_every_moment_finds_its_frame(tmp_path, segment_bytes_max):
    chance = random.Random(4)
    stamps = sorted(chance.randrange(1_000, 20_000) for _ in range(3_000))
    bodies = [MAGIC * chance.choice([1, 5, 400, 20_000 if n % 100 == 0 else 2]) for n in range(3_000)]
    positions = written(tmp_path, stamps, bodies, segment_bytes_max=segment_bytes_max)
    for at_ms in [0, 999, *range(1_000, 20_050, 311), stamps[0], stamps[-1], 10**12]:
        place = seek(tmp_path, at_ms)
        behind = bisect_right(stamps, at_ms)
        if not behind:
            assert place is None
            continue
        assert place is not None
        last = behind - 1
        assert (place.position, place.at_ms) == (positions[last], stamps[last])
        assert (place.epoch, place.record) == (1 + last // 100, last * 10 + 10)


def test_an_empty_log_was_nowhere(tmp_path):
    written(tmp_path, [], [])
    assert seek(tmp_path, 10**12) is None
    assert [span.begins for span in spans(tmp_path)] == [None]


def test_segments_by_their_first_frame(tmp_path):
    positions = written(tmp_path, list(range(100)), [bytes(1_000)] * 100, segment_bytes_max=20_000)
    found = spans(tmp_path)
    assert len(found) > 3
    assert [span.sealed for span in found] == [True] * (len(found) - 1) + [False]
    for span in found:
        assert span.begins is not None
        assert span.first == positions[span.begins.at_ms]


def test_a_million_records_are_not_read(tmp_path):
    """A hundred thousand frames of ten records each: a few headers are looked at, not the log."""
    count = 100_000
    written(tmp_path, list(range(count)), [bytes(600)] * count, segment_bytes_max=16 << 20)
    disk = CountingDisk()
    began_s = perf_counter()
    for at_ms in range(0, count, count // 20):
        place = seek(tmp_path, at_ms, disk)
        assert place is not None
        assert place.record == at_ms * 10 + 10
    assert disk.bytes / 20 < 6 << 20, "a small part of the log's seventy megabytes"
    assert (perf_counter() - began_s) / 20 < 0.25


class VanishingDisk(RealDisk):
    """Its files are trimmed between being listed and being opened."""

    def open_to_read(self, path: str) -> int:
        raise FileNotFoundError(path)


def test_segments_trimmed_during_a_search_are_skipped(tmp_path):
    written(tmp_path, [1_000], [b"x"])
    assert spans(tmp_path, VanishingDisk()) == []
    assert seek(tmp_path, 2_000, VanishingDisk()) is None


def test_a_log_says_how_far_it_reaches(tmp_path):
    async def main() -> None:
        log = FileLog(tmp_path)
        await log.open()
        assert log.extent() == (0, 1)
        await log.close()

    asyncio.run(main())
