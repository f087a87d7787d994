"""A copy of a data folder, taken while its engine runs: the store first, then the log up to a later moment.

The order makes the copy complete. A store covers everything below its checkpoint, and the log has the
rest; so the log must be copied later, and must still reach back to the copied checkpoint. If the engine trims
its log in between, both are copied again. Of the segment that is being written, only the frames present when
copying began are taken: later ones could be seen in part.
"""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from duetime import private_files
from duetime.engine.durability.audit import AuditReport, audit, copy_store
from duetime.errors import BadConfig, Damaged, InvalidField, Unavailable
from duetime.limits import BACKUP_READ_BYTES, BACKUP_TRIES_MAX
from duetime.log import inspect
from duetime.log.identity import IDENTITY_NAME
from duetime.log.inspect import SegmentInfo
from duetime.log.segment import SEGMENT_HEADER_BYTES
from duetime.log.synced_marker import MARK_NAME
from duetime.os_errors import of_system
from duetime.store.sqlite.store import SqliteStore


class Backup(Struct, rename="camel"):
    """What was copied."""

    position: int
    """Everything below this log position is in the copy."""
    checkpoint: int
    segments: int
    bytes: int
    intents: int
    """The number of intents in the state of the copy."""


class _Overtaken(Exception):
    """The engine trimmed its log before it was copied."""


def backup(log_folder: Path, store_file: Path, others: list[Path], to: Path) -> Backup:
    """Copy a data folder to an empty place. `others` are small files of the folder."""
    if not log_folder.is_dir():
        raise BadConfig(
            f"There is no log in {log_folder.parent}.", hint="Pass the data folder with --data DIR."
        )
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise InvalidField(f"{to} is not empty.", hint="Choose a folder that does not exist yet.")
    part = to.with_name(f".{to.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        made = _copy(log_folder, store_file, others, part)
        report = audit(part / log_folder.name, part / store_file.name)
        _check(report, part)
        made.intents = report.intents
        _sync(part)
        os.rename(part, to)  # an empty folder is replaced; a half-made copy is never visible
    except OSError as error:
        raise of_system(error, to) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return made


def _copy(log_folder: Path, store_file: Path, others: list[Path], part: Path) -> Backup:
    for _ in range(BACKUP_TRIES_MAX):
        shutil.rmtree(part, ignore_errors=True)
        private_files.make_folder(part / log_folder.name)
        for file in others:
            if file.exists():
                shutil.copyfile(file, part / file.name)
        checkpoint = _copy_store(store_file, part / store_file.name)
        try:
            return _copy_log(log_folder, part / log_folder.name, checkpoint)
        except _Overtaken:
            continue
    for damage in inspect.verify(log_folder):  # then it is not the engine that was too fast
        raise Damaged(f"{damage.file} at {damage.offset}: {damage.what}")
    raise Unavailable(
        f"The log was trimmed faster than it could be copied, {BACKUP_TRIES_MAX} times.",
        hint="Try again under less load, or raise log.history_bytes.",
    )


def _copy_store(store_file: Path, copy: Path) -> int:
    """Copy the store; returns the position of the copied checkpoint, 0 if there is none yet."""
    if not store_file.exists():
        return 0
    copy_store(store_file, copy)
    with closing(SqliteStore(copy)) as store:
        found = store.load()
    return 0 if found is None else found.position


def _copy_log(log_folder: Path, copy: Path, checkpoint: int) -> Backup:
    # Copy the mark first: everything it covers is in the segments listed after it.
    if (log_folder / MARK_NAME).exists():
        shutil.copyfile(log_folder / MARK_NAME, copy / MARK_NAME)
    if (log_folder / IDENTITY_NAME).exists():
        shutil.copyfile(log_folder / IDENTITY_NAME, copy / IDENTITY_NAME)
    segments = inspect.segments(log_folder)
    if not segments or segments[0].first > checkpoint or segments[-1].last < checkpoint:
        raise _Overtaken
    size = 0
    for number, info in enumerate(segments):
        if number and segments[number - 1].last != info.first:
            raise _Overtaken  # one between them was trimmed while they were listed
        try:
            size += _copy_segment(log_folder / info.file, copy / info.file, info)
        except FileNotFoundError:
            if info.last > checkpoint:
                raise _Overtaken from None
            # Older than the checkpoint: history, trimmed by now like everything before it.
            for older in segments[: number + 1]:
                (copy / older.file).unlink(missing_ok=True)
    return Backup(segments[-1].last, checkpoint, len(list(copy.glob("*.seg"))), size, 0)


def _copy_segment(file: Path, copy: Path, info: SegmentInfo) -> int:
    """Copy a sealed segment as it is; the newest up to its last whole frame."""
    left = info.bytes if info.sealed else info.last - info.first + SEGMENT_HEADER_BYTES
    size = left
    with file.open("rb") as source, copy.open("wb") as target:
        while left:
            chunk = source.read(min(left, BACKUP_READ_BYTES))
            if not chunk:
                break
            target.write(chunk)
            left -= len(chunk)
    return size


def _check(report: AuditReport, part: Path) -> None:
    if report.findings:
        first = report.findings[0]
        raise Damaged(
            f"The copy is damaged: {first.place}: {first.what}",
            hint="`duetime log verify` on the data folder shows whether the original is damaged.",
        )
    # The inspection left files of its own, which a copy does not need.
    for extra in part.glob("*.db-*"):
        extra.unlink()


def _sync(part: Path) -> None:
    """Sync every file and name, and make them readable for this user only."""
    for path in (*part.rglob("*"), part, part.parent):
        if path != part.parent:
            path.chmod(private_files.FOLDER_MODE if path.is_dir() else private_files.FILE_MODE)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
