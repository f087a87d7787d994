"""The file log does what the memory log does, through crashes; and no bytes surprise the decoders."""

from __future__ import annotations

import asyncio
import contextlib
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from duetime.errors import Damaged, Moved, TooNew
from duetime.log.file import FileLog
from duetime.log.frame import Frame, decode, decode_body, decode_header, encode
from duetime.log.inspect import scan, segments, verify
from duetime.log.memory import MemoryLog
from duetime.log.segment import segment_header
from duetime.log.tail import find_end
from duetime.testing.contracts.log import read_all
from duetime.testing.disk import FaultyDisk, Survival

UINT64 = st.integers(0, 2**64 - 1)
FRAMES = st.builds(
    Frame, UINT64, UINT64, UINT64, st.integers(0, 2**32 - 1), UINT64, st.integers(0, 255),
    st.one_of(
        st.binary(max_size=40), st.integers(0, 1_500).map(bytes), st.integers(0, 1_500).map(b"x".__mul__)
    ),
)  # fmt: skip


async def outcome(log: MemoryLog | FileLog, at: int, frame: Frame) -> Any:
    try:
        return await log.append(at, frame)
    except Moved:
        return Moved


class FileLogAgainstMemoryLog(RuleBasedStateMachine):
    """The same calls on both; after a power cut the memory log is cut to what is left."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = FaultyDisk()
        self.model = MemoryLog()
        self.synced = 0
        self.trimmed = 0
        self.log = self.open()

    def open(self) -> FileLog:
        log = FileLog("log", disk=self.disk, segment_bytes_max=1500, allocate_bytes=400, history_bytes=0,
                      inline_sync=True)  # fmt: skip
        asyncio.run(log.open())
        return log

    @rule(frame=FRAMES, offset=st.sampled_from([-1, 0, 0, 0, 0, 1]))
    def append(self, frame: Frame, offset: int) -> None:
        at = self.model.storage.tail + offset
        assert asyncio.run(outcome(self.log, at, frame)) == asyncio.run(outcome(self.model, at, frame))

    @rule()
    def sync(self) -> None:
        self.synced = asyncio.run(self.log.sync())
        assert self.synced == self.model.storage.tail

    @rule()
    def reopen(self) -> None:
        asyncio.run(self.log.close())
        self.log = self.open()
        self.synced = self.model.storage.tail

    @rule()
    def crash(self) -> None:
        self.disk.kill()
        self.log = self.open()
        self.synced = self.model.storage.tail

    @rule(seed=st.integers(0, 1_000), survival=st.sampled_from(Survival))
    def power_cut(self, seed: int, survival: Survival) -> None:
        self.disk.restart(Random(seed), survival)
        self.log = self.open()
        tail = asyncio.run(self.log.tail())
        assert self.synced <= tail <= self.model.storage.tail
        self.model.storage.frames = [each for each in self.model.storage.frames if each[0] < tail]
        self.model.storage.tail = self.synced = tail

    @rule(part=st.floats(0, 1.2))
    def trim(self, part: float) -> None:
        self.trimmed = max(self.trimmed, int(self.model.storage.tail * part))
        asyncio.run(self.log.trim(self.trimmed))

    @invariant()
    def same(self) -> None:
        async def compare() -> None:
            start = await self.log.start()
            assert start <= self.trimmed
            assert await self.log.tail() == await self.model.tail()
            assert await read_all(self.log) == [
                each for each in self.model.storage.frames if each[0] >= start
            ]

        asyncio.run(compare())


TestFileLogAgainstMemoryLog = FileLogAgainstMemoryLog.TestCase
TestFileLogAgainstMemoryLog.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


@given(UINT64, UINT64, FRAMES, st.binary(max_size=80))
def test_a_frame_comes_back_from_its_bytes_whatever_follows(
    position: int, synced: int, frame: Frame, behind: bytes
) -> None:
    header, found = decode(encode(position, synced, frame) + behind, "here")
    assert found == frame
    assert (header.position, header.synced) == (position, synced)


@given(
    st.one_of(st.binary(max_size=200), st.binary(max_size=200).map(lambda tail: b"\xd0\xe7\x01\x00" + tail))
)
@example(b"")
@example(encode(1, 2, Frame(0, 0, 0, 0, 0, 0, b"")))
def test_any_bytes_are_a_frame_or_are_refused(data: bytes) -> None:
    with contextlib.suppress(Damaged, TooNew):
        header, frame = decode(data, "here")
        assert data.startswith(encode(header.position, header.synced, frame))
    with contextlib.suppress(Damaged, TooNew):
        decode_body(decode_header(data, "here"), data, "here")


@given(FRAMES, st.data())
def test_a_frame_changed_anywhere_is_refused(frame: Frame, data: st.DataObject) -> None:
    encoded = bytearray(encode(5, 0, frame))
    offset = data.draw(st.integers(0, len(encoded) - 1))
    encoded[offset] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(Damaged, TooNew):
        decode(bytes(encoded), "here")
        raise AssertionError("a changed frame was taken")


@given(st.one_of(st.binary(max_size=600), st.binary(max_size=600).map(lambda tail: segment_header(0) + tail)))
def test_any_bytes_as_the_newest_segment_are_opened_or_refused(data: bytes) -> None:
    disk = FaultyDisk()
    disk.put("log/00000000000000000000.seg", data)
    verify("log", disk)
    segments("log", disk)
    log = FileLog("log", disk=disk, segment_bytes_max=1500)
    with contextlib.suppress(Damaged, TooNew):
        assert list(scan("log", disk=disk)) == []
        find_end(disk, disk.open_to_read("log/00000000000000000000.seg"), 0, 0)
        asyncio.run(log.open())
        assert asyncio.run(read_all(log)) == []
