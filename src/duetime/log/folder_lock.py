"""One process at a time may write a data folder. Owns the file `lock`.

The lock is the operating system's, so it is released when the process that holds it ends, however it ends.
The file's content (process, host, since when) is for people: it is only valid while the lock is held.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Final

import msgspec

from duetime.errors import Held
from duetime.limits import LOCK_NOTE_BYTES_MAX
from duetime.log.disk import Disk

LOCK_NAME: Final = "lock"


class LockNote(msgspec.Struct):
    """What the lock file tells about its holder."""

    pid: int
    host: str
    since_ms: int


def hold(disk: Disk, directory: str) -> int:
    """Lock the folder and return the lock's file; closing the file unlocks. Raises `Held`."""
    file = disk.open(os.path.join(directory, LOCK_NAME), create=True)
    try:
        if not disk.lock(file):
            raise _held(directory, disk.read(file, 0, LOCK_NOTE_BYTES_MAX))
        # Truncating sets the file's time: it comes from the file system, because the log has no clock.
        disk.truncate(file, 0)
        note = LockNote(os.getpid(), socket.gethostname(), disk.modified_ms(file))
        disk.write(file, 0, (msgspec.json.encode(note),))
    except BaseException:
        disk.close(file)
        raise
    return file


def _held(directory: str, text: bytes) -> Held:
    try:
        note = msgspec.json.decode(text, type=LockNote)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(note.since_ms / 1_000))
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, OverflowError, OSError):
        # The holder has the lock but has not written its note yet.
        return Held(f"{directory} is held by another process, which has not said its name yet.")
    return Held(
        f"{directory} is held by process {note.pid} on {note.host} since {since}.",
        pid=note.pid, host=note.host, since_ms=note.since_ms,
    )  # fmt: skip
