"""What the file log does when the disk is full or fails."""

from __future__ import annotations

import errno
import os

import pytest

from duetime.errors import Damaged, Exhausted, Fatal, InDoubt, NoSpace
from duetime.log.file import FileLog
from duetime.log.frame import ENVELOPE_BYTES
from duetime.testing.contracts.log import bodies_of, frame
from duetime.testing.disk import FaultyDisk
from tests.torture.log_script import run_now
from tests.unit.log.rig import Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_full_disk_refuses_and_the_log_continues_when_there_is_room(rig: Rig) -> None:
    rig.append(b"before")
    rig.disk.capacity_bytes = rig.disk.used_bytes() + 10
    # What was reserved is still there to be used, to the last byte.
    room = rig.log.room()
    assert room > 150
    rig.append(b"y" * (room - ENVELOPE_BYTES - 10))
    tail = run_now(rig.log.tail())
    for _ in range(3):
        with pytest.raises(NoSpace, match="log: No space left on device"):
            rig.append(b"z" * 200)
        assert run_now(rig.log.tail()) == tail
    assert run_now(rig.log.sync()) == tail
    rig.disk.capacity_bytes *= 10
    rig.append(b"after")
    assert [body[:1] for body in rig.bodies()] == [b"b", b"y", b"a"]
    rig.disk.kill()
    assert run_now(bodies_of(rig.opened())) == rig.bodies()


def test_when_a_step_does_not_fit_the_frame_still_may(rig: Rig) -> None:
    rig.append(b"x" * 150)
    rig.disk.capacity_bytes = rig.disk.used_bytes() + 250
    rig.append(b"y" * 200)
    assert rig.bodies() == [b"x" * 150, b"y" * 200]


@pytest.mark.parametrize("operation", ["open", "allocate", "write", "sync_file", "rename"])
def test_a_full_disk_at_rotation_refuses_and_leaves_no_trace(rig: Rig, operation: str) -> None:
    rig.append(b"x" * 400)
    rig.append(b"x" * 400)
    # The mark is written before the new segment's header, the old segment synced before the new one.
    rig.fail_next(operation, errno.ENOSPC, times=2, after=1 if operation in ("write", "sync_file") else 0)
    with pytest.raises(NoSpace):
        rig.append(b"y" * 400)
    assert len(rig.segments()) == 1
    rig.disk.before = None
    rig.append(b"y" * 400)
    assert rig.bodies() == [b"x" * 400, b"x" * 400, b"y" * 400]
    assert not [path for path in rig.disk.contents() if path.endswith(".tmp")]


def test_a_header_written_short_at_rotation_refuses(rig: Rig) -> None:
    rig.append(b"x" * 400)
    rig.append(b"x" * 400)
    base = len(rig.disk.operations)
    rig.disk.short_writes = {base + number: 20 for number in range(20)}
    with pytest.raises(NoSpace):
        rig.append(b"y" * 400)
    rig.disk.short_writes = {}
    rig.append(b"y" * 400)
    assert rig.bodies() == [b"x" * 400, b"x" * 400, b"y" * 400]


def test_a_segment_that_could_not_be_removed_after_a_failed_rotation_is_removed_later(rig: Rig) -> None:
    rig.append(b"x" * 400)
    rig.append(b"x" * 400)
    base = len(rig.disk.operations)
    rig.disk.errors = dict.fromkeys(range(base + 5, base + 50), errno.ENOSPC)
    with pytest.raises(NoSpace):
        rig.append(b"y" * 400)
    rig.disk.errors = {}
    assert [path for path in rig.disk.contents() if path.endswith(".tmp")]
    rig.disk.kill()
    log = rig.opened()
    assert run_now(bodies_of(log)) == [b"x" * 400] * 2
    assert not [path for path in rig.disk.contents() if path.endswith(".tmp")]


def test_a_short_write_is_taken_back(rig: Rig) -> None:
    rig.append(b"before")
    rig.disk.short_writes = {len(rig.disk.operations) + number: 30 for number in range(1, 4)}
    with pytest.raises(NoSpace, match="only 30 of 76 bytes"):
        rig.append(b"failed")
    rig.disk.short_writes = {}
    data = rig.disk.contents()[rig.segments()[0]]
    assert len(data) == 32 + 76, "nothing half written is left"
    rig.append(b"after")
    assert rig.bodies() == [b"before", b"after"]


def half_write_that_cannot_be_taken_back(rig: Rig, times: int) -> None:
    rig.append(b"before")
    rig.disk.short_writes = {len(rig.disk.operations) + 1: 30}
    rig.fail_next("truncate", times=times)
    with pytest.raises(InDoubt):
        rig.append(b"doubtful")
    rig.disk.short_writes = {}


def test_doubt_is_settled_by_the_next_call(rig: Rig) -> None:
    half_write_that_cannot_be_taken_back(rig, times=1)
    assert rig.bodies() == [b"before"]
    rig.append(b"after")
    assert rig.bodies() == [b"before", b"after"]
    rig.disk.kill()
    assert run_now(bodies_of(rig.opened())) == [b"before", b"after"]


def test_doubt_that_cannot_be_settled_stops_the_log(rig: Rig) -> None:
    half_write_that_cannot_be_taken_back(rig, times=2)
    for _ in range(2):
        with pytest.raises(Fatal):
            run_now(rig.log.tail())
    run_now(rig.log.close())
    assert run_now(bodies_of(rig.opened())) == [b"before"]


def test_a_doubt_that_cannot_be_settled_durably_stops_the_log(rig: Rig) -> None:
    half_write_that_cannot_be_taken_back(rig, times=1)
    rig.fail_next("sync_file")
    with pytest.raises(Fatal, match=r"stopped: 0+\.seg cannot be synced"):
        run_now(rig.log.tail())
    run_now(rig.log.close())


@pytest.mark.parametrize(
    "operation", ["write", "allocate", "truncate", "sync_file", "sync_directory", "rename"]
)
def test_any_other_error_while_writing_stops_the_log(rig: Rig, operation: str) -> None:
    rig.append(b"x" * 400)
    rig.append(b"x" * 400)
    # The mark is written before the frame, and its errors do not count.
    rig.fail_next(operation, times=3 if operation == "write" else 1)
    with pytest.raises(Fatal):
        rig.append(b"y" * 400)
    for call in (rig.log.start, rig.log.tail, rig.log.sync):
        with pytest.raises(Fatal):
            run_now(call())
    run_now(rig.log.close())
    rig.disk.before = None
    assert run_now(bodies_of(rig.opened())) == [b"x" * 400] * 2


def test_a_failed_write_of_a_frame_stops_the_log(rig: Rig) -> None:
    rig.append(b"x")
    rig.fail_next("write")
    with pytest.raises(Fatal, match=r"The log in log stopped: .*Input/output error"):
        rig.append(b"y")
    run_now(rig.log.close())


def test_a_write_refused_as_full_is_taken_back(rig: Rig) -> None:
    rig.append(b"x")
    rig.fail_next("write", errno.EDQUOT)
    with pytest.raises(NoSpace):
        rig.append(b"y")
    rig.append(b"z")
    assert rig.bodies() == [b"x", b"z"]


def test_a_failed_sync_is_final_and_never_tried_again(rig: Rig) -> None:
    rig.append(b"x")
    rig.fail_next("sync_data")
    with pytest.raises(Fatal):
        run_now(rig.log.sync())
    for call in (rig.log.sync, rig.log.tail, rig.log.start):
        with pytest.raises(Fatal):
            run_now(call())
    with pytest.raises(Fatal):
        run_now(rig.log.append(71, frame(b"y")))
    with pytest.raises(Fatal):
        run_now(rig.log.trim(0))
    with pytest.raises(Fatal):
        rig.log.read(0)
    syncs = rig.disk.operations.count("sync_data")
    run_now(rig.log.close())
    assert rig.disk.operations.count("sync_data") == syncs + 1, "only the mark's"
    assert run_now(bodies_of(rig.opened())) == [b"x"]


@pytest.mark.parametrize("operation", ["unlink", "sync_directory"])
def test_a_failed_trim_stops_the_log(rig: Rig, operation: str) -> None:
    tails = [rig.append(b"x" * 400) for _ in range(5)]
    rig.fail_next(operation)
    with pytest.raises(Fatal):
        run_now(rig.log.trim(tails[4]))
    run_now(rig.log.close())
    assert run_now(bodies_of(rig.opened()))[-1:] == [b"x" * 400]


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_an_error_while_opening_lets_go_of_everything(error: int) -> None:
    for number in range(1, 200):
        disk = FaultyDisk()
        log = FileLog("log", disk=disk)
        disk.errors = {number: error}
        try:
            run_now(log.open())
            opened = True
        except (Fatal, NoSpace):
            opened = False
        # Errors of the mark do not keep the log from opening.
        if opened and len(disk.operations) < number:
            break
        run_now(log.close())
        assert not disk.open_files()
        disk.errors = {}
        run_now(log.open())
        run_now(log.close())
    assert number > 10


def test_a_lock_that_was_removed_is_noticed_by_the_next_sync(rig: Rig) -> None:
    rig.append(b"a")
    rig.disk.forget("log/lock")
    with pytest.raises(Fatal, match="'lock' was removed"):
        run_now(rig.log.sync())
    with pytest.raises(Fatal, match="'lock' was removed"):
        rig.append(b"b")


def test_a_lock_that_was_replaced_is_noticed_before_a_write_after_a_rest(rig: Rig) -> None:
    rig.append(b"a")
    run_now(rig.log.sync())
    rig.disk.forget("log/lock")
    other = rig.opened()
    run_now(other.append(run_now(other.tail()), frame(b"theirs")))
    with pytest.raises(Fatal, match="'lock' was removed"):
        rig.append(b"ours")
    assert run_now(bodies_of(other)) == [b"a", b"theirs"]


def test_a_lock_that_cannot_be_looked_at_stops_the_log(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(file: int, path: str) -> bool:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(rig.disk, "is_named", failing)
    with pytest.raises(Fatal, match=r"stopped: .*Permission denied"):
        rig.append(b"a")


def test_a_forked_child_neither_writes_nor_holds(rig: Rig) -> None:
    rig.append(b"a")
    rig.log.disown()
    rig.log.disown()
    with pytest.raises(Fatal, match="forked from"):
        rig.append(b"b")
    again = rig.opened()
    assert run_now(bodies_of(again)) == [b"a"]
    run_now(rig.log.close())


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_too_few_files_at_rotation_refuse_and_the_log_continues(rig: Rig, error: int) -> None:
    rig.append(b"x" * 600)
    rig.fail_next("open", error)
    with pytest.raises(Exhausted):
        rig.append(b"y" * 600)
    rig.append(b"y" * 600)
    assert rig.bodies() == [b"x" * 600, b"y" * 600]


def test_a_segment_that_cannot_be_opened_or_read_for_want_of_files_is_not_damaged(rig: Rig) -> None:
    rig.append(b"a")
    rig.fail_next("open_to_read", errno.EMFILE)
    with pytest.raises(Exhausted):
        rig.bodies()
    rig.fail_next("read", errno.ENOMEM)
    with pytest.raises(Exhausted):
        rig.bodies()
    rig.disk.forget(rig.segments()[0])
    with pytest.raises(Damaged, match="cannot be opened"):
        rig.bodies()
