"""The identity of a data folder. Owns the file `id`: a random name, created once and never changed.

The store and every backup of the folder carry the same name, so that a store and a log of two different
folders are told apart even if their positions happen to fit.
"""

from __future__ import annotations

import os
import re
import secrets
from typing import Final

from duetime.errors import Damaged
from duetime.limits import LOG_ID_BYTES_MAX
from duetime.log.disk import Disk

IDENTITY_NAME: Final = "id"
_UNFINISHED: Final = "id.tmp"
_IDENTITY: Final = re.compile(rb"[0-9a-f]{32}\n?")


def read_identity(disk: Disk, directory: str) -> str | None:
    """The folder's identity; None if it has none yet. Raises `Damaged` if the file holds no valid one."""
    path = os.path.join(directory, IDENTITY_NAME)
    try:
        file = disk.open_to_read(path)
    except FileNotFoundError:
        return None
    try:
        text = disk.read(file, 0, LOG_ID_BYTES_MAX)
    finally:
        disk.close(file)
    if _IDENTITY.fullmatch(text) is None:
        raise Damaged(f"{path}: it does not hold the folder's id, 32 hexadecimal digits.")
    return text[:32].decode()


def identify(disk: Disk, directory: str) -> str:
    """The folder's identity; created and synced if there is none yet."""
    found = read_identity(disk, directory)
    if found is not None:
        return found
    made = secrets.token_hex(16)
    unfinished = os.path.join(directory, _UNFINISHED)
    file = disk.open(unfinished, create=True)
    try:
        disk.write(file, 0, (f"{made}\n".encode(),))
        disk.sync_file(file)
    finally:
        disk.close(file)
    disk.rename(unfinished, os.path.join(directory, IDENTITY_NAME))
    disk.sync_directory(directory)
    return made
