"""Segments cut at every byte and flipped at every byte: a prefix, the truth, or `Damaged` with the place."""

from __future__ import annotations

import errno
from random import Random

import pytest

from duetime.errors import Damaged, DuetimeError, Fatal
from duetime.log.frame import Frame, frame_bytes
from duetime.log.inspect import verify
from duetime.log.segment import SEGMENT_HEADER_BYTES
from duetime.testing.disk import FaultyDisk
from tests.torture.log_script import Found, Script, read_all, run_now

MARK = "log/synced"


class Written:
    """A closed log and what is in it; each trial starts from its bytes."""

    def __init__(self, script: Script) -> None:
        self.script = script
        run_now(script.log.close())
        self.files = script.disk.contents()
        log = script.new_log()
        run_now(log.open())
        self.found = read_all(log)
        self.tail = run_now(log.tail())
        run_now(log.close())
        self.newest = max(path for path in self.files if path.endswith(".seg"))
        self.newest_first = int(self.newest[4:24])

    def opened_with(self, path: str, data: bytes, *, mark: bool) -> Found:
        """What the log holds when one of its files has these bytes instead."""
        disk = self.disk_with(path, data, mark=mark)
        log = self.script.new_log(disk)
        run_now(log.open())
        found = read_all(log)
        # And it goes on behind that.
        tail = run_now(log.tail())
        frame = Frame(9, 9, 9, 9, 9, 9, b"on")
        run_now(log.append(tail, frame))
        assert read_all(log) == [*found, (tail, frame)]
        run_now(log.close())
        return found

    def disk_with(self, path: str, data: bytes, *, mark: bool) -> FaultyDisk:
        disk = FaultyDisk()
        for each, content in self.files.items():
            if each != MARK or mark:
                disk.put(each, data if each == path else content)
        return disk

    def frames_up_to(self, offset: int) -> Found:
        """The frames that end at or before this offset of the newest segment."""
        limit = offset - SEGMENT_HEADER_BYTES + self.newest_first
        return [
            (at, frame)
            for at, frame in self.found
            if at + frame_bytes(frame) <= max(limit, self.newest_first)
        ]


@pytest.fixture(scope="module")
def written() -> Written:
    script = Script(FaultyDisk(), seed=27, segment_bytes_max=4000)
    script.start()
    script.steps(300)
    result = Written(script)
    assert result.tail - result.newest_first > 2_000, "the newest segment is worth cutting"
    assert len([path for path in result.files if path.endswith(".seg")]) > 1
    return result


def test_cut_at_every_byte_the_log_holds_what_was_whole_before_the_cut(written: Written) -> None:
    whole = written.files[written.newest]
    for cut in range(len(whole) + 1):
        assert written.opened_with(written.newest, whole[:cut], mark=False) == written.frames_up_to(cut), cut


def test_a_write_cut_short_at_every_byte_is_a_torn_tail(written: Written) -> None:
    whole = written.files[written.newest]
    end = len(whole.rstrip(b"\0"))
    for cut in range(end + 1):
        data = whole[:cut] + bytes(len(whole) - cut)
        expected = written.frames_up_to(cut)
        assert written.opened_with(written.newest, data, mark=False) == expected, cut


def test_cut_below_the_mark_the_log_refuses_to_open(written: Written) -> None:
    whole = written.files[written.newest]
    end = written.tail - written.newest_first + SEGMENT_HEADER_BYTES
    for cut in range(0, len(whole) + 1, 7):
        if cut >= end:
            assert written.opened_with(written.newest, whole[:cut], mark=True) == written.found
            continue
        with pytest.raises(Damaged, match=r"\.seg at \d+"):
            written.opened_with(written.newest, whole[:cut], mark=True)


def place_of(error: DuetimeError) -> tuple[str, int]:
    name, _, rest = error.message.partition(" at ")
    return name, int(rest.split(":")[0])


def check_flip(written: Written, path: str, offset: int, mask: int, *, mark: bool) -> bool:
    """Flip bits of one byte; whether it was noticed."""
    data = bytearray(written.files[path])
    data[offset] ^= mask
    try:
        found = written.opened_with(path, bytes(data), mark=mark)
    except Damaged as error:
        name, place = place_of(error)
        assert name == path[4:], error.message
        assert place <= offset, "the place named is the start of what the flipped byte belongs to"
        places = verify("log", written.disk_with(path, bytes(data), mark=mark))
        assert (name, place) in [(each.file, each.offset) for each in places]
        return True
    assert found == written.found
    return False


@pytest.mark.parametrize("mark", [True, False])
def test_every_byte_turned_over_is_noticed_or_harmless(written: Written, mark: bool) -> None:
    for path in sorted(written.files):
        if not path.endswith(".seg"):
            continue
        data = written.files[path]
        used = len(data.rstrip(b"\0"))
        for offset in range(0, len(data), 1 if path == written.newest else 5):
            noticed = check_flip(written, path, offset, 0xFF, mark=mark)
            assert noticed or offset >= used, (path, offset)


@pytest.mark.parametrize("mark", [True, False])
def test_every_bit_of_a_small_log_flipped_is_noticed_or_harmless(mark: bool) -> None:
    script = Script(FaultyDisk(), seed=3, segment_bytes_max=700, body_max=90)
    script.start()
    script.steps(14)
    written = Written(script)
    for path in sorted(written.files):
        if path.endswith(".seg"):
            used = len(written.files[path].rstrip(b"\0"))
            for offset in range(len(written.files[path])):
                for bit in range(8):
                    noticed = check_flip(written, path, offset, 1 << bit, mark=mark)
                    assert noticed or offset >= used, (path, offset, bit)


def test_every_byte_of_the_mark_flipped_is_harmless(written: Written) -> None:
    mark = written.files[MARK]
    for offset in range(len(mark)):
        for bit in range(8):
            data = bytearray(mark)
            data[offset] ^= 1 << bit
            assert written.opened_with(MARK, bytes(data), mark=True) == written.found


@pytest.mark.parametrize("number_of_errors", [1, 2, 3])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_an_error_at_the_nth_operation_loses_nothing_synced(error: int, number_of_errors: int) -> None:
    number, stopped, refused = 0, 0, 0
    while True:
        number += 1
        disk = FaultyDisk()
        disk.errors = {number + more: error for more in range(number_of_errors)}
        script = Script(disk, seed=11, segment_bytes_max=1500)
        try:
            script.start()
            script.steps(40)
        except DuetimeError as raised:
            stopped += 1
            assert str(raised)
            if isinstance(raised, Fatal) and script.opened:
                for call in (script.log.tail, script.log.start, script.log.sync):
                    with pytest.raises(Fatal):
                        run_now(call())
        if len(disk.operations) < number:
            break
        refused += script.refused
        disk.errors = {}
        disk.kill()
        script.check(disk)
    assert number > 100
    assert stopped
    assert refused or error == errno.EIO


def test_a_short_write_at_the_nth_operation_is_taken_back() -> None:
    refused = 0
    for number in range(1, 1_000):
        disk = FaultyDisk()
        disk.short_writes = {number: Random(number).randrange(200)}
        script = Script(disk, seed=12, segment_bytes_max=1500)
        try:
            script.start()
            script.steps(60)
        except DuetimeError:
            # Only opening has no second try.
            assert number < 20 or "open" in disk.operations[-20:]
        if len(disk.operations) < number:
            break
        refused += script.refused
        disk.kill()
        script.check(disk)
    assert refused > 20
