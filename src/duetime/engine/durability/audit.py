"""Check from outside whether a data folder is sound: every frame, record and row, and the state they lead to.

Takes no lock and changes nothing: the store is copied first, then the log is read from the copy's
checkpoint on. So it may run beside a running engine, of which it sees one moment.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote
from zlib import crc32

from msgspec import Struct

from duetime.engine.durability.recovery import recover
from duetime.errors import Damaged, DuetimeError, Unavailable
from duetime.kernel import invariants
from duetime.limits import AUDIT_TRIES_MAX
from duetime.log import inspect
from duetime.log.frame import Frame
from duetime.log.identity import read_identity
from duetime.log.inspect import Look
from duetime.log.log import Position
from duetime.os_errors import UNREADABLE, of_store, store_told, told
from duetime.protocol import record as codec
from duetime.protocol.record import Unreadable
from duetime.store.sqlite.store import SqliteStore


class Finding(Struct, frozen=True):
    """One place that differs from what was written."""

    place: str
    what: str


class AuditReport(Struct):
    """What was checked, and what is wrong."""

    frames: int = 0
    records: int = 0
    rows: int = 0
    replayed: int = 0
    """Records applied on top of the checkpoint."""
    intents: int = 0
    """The number of intents in the resulting state."""
    findings: list[Finding] = []

    def found(self, place: str, what: str) -> None:
        self.findings.append(Finding(place, what))


def audit(log_folder: Path, store_file: Path) -> AuditReport:
    """Check everything."""
    with told(log_folder), tempfile.TemporaryDirectory(prefix="duetime-verify-") as folder:
        copy = Path(folder) / "store.db"
        for _ in range(AUDIT_TRIES_MAX):
            report = AuditReport()
            sound = _copy_store(store_file, copy, report)
            with Look(log_folder) as look:
                if sound and _trimmed_meanwhile(look, copy):
                    continue
                if sound:
                    _check_rows(copy, report)
                end = _check_log(look, report)
                if not report.findings:  # a damaged folder leads to no state
                    _replay(look, end, copy, report)
                return report
    raise Unavailable(
        f"The engine trimmed its log {AUDIT_TRIES_MAX} times before the log could be read.",
        hint="Try again under less load, or raise log.history_bytes.",
    )


def _trimmed_meanwhile(look: Look, copy: Path) -> bool:
    """Whether the log begins after the copied checkpoint because its engine trimmed it in between."""
    if not copy.exists():
        return False
    try:
        with closing(SqliteStore(copy)) as store:
            checkpoint = store.load()
    except DuetimeError:
        return False  # the detailed checks report it
    return checkpoint is not None and bool(look.firsts) and checkpoint.position < look.firsts[0]


# The store.


def _copy_store(store_file: Path, copy: Path, report: AuditReport) -> bool:
    if not store_file.exists():
        return True
    copy.unlink(missing_ok=True)
    try:
        copy_store(store_file, copy)
    except Damaged as error:
        report.found(store_file.name, error.message)
        return False
    return True


def copy_store(store_file: Path, copy: Path) -> None:
    """Copy a store, also while its engine writes it. An error is raised as what it is."""
    with closing(_to_read(store_file)) as source, closing(sqlite3.connect(copy)) as target:
        try:
            source.backup(target)
        except UNREADABLE as error:
            known = of_store(error, store_file)
            # Only the copy grows: it is the copy's disk that is full or failed.
            raise known if isinstance(known, Damaged) else of_store(error, copy) from error


def _to_read(path: Path) -> sqlite3.Connection:
    place = f"file:{quote(str(path))}?mode=ro"
    with store_told(path):
        connection = sqlite3.connect(place, uri=True)
        try:
            connection.execute("PRAGMA user_version")
        except sqlite3.OperationalError as error:
            connection.close()
            unwritable = error.sqlite_errorname.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY"))
            if not unwritable or path.with_name(f"{path.name}-wal").exists():
                raise
            # In a read-only folder SQLite reads only files that no process writes, which is the case here.
            connection = sqlite3.connect(f"{place}&immutable=1", uri=True)
        except BaseException:
            connection.close()
            raise
    return connection


def _check_rows(copy: Path, report: AuditReport) -> None:
    if not copy.exists():
        return
    with closing(_to_read(copy)) as connection:
        try:
            for (line,) in connection.execute("PRAGMA integrity_check"):
                if line != "ok":
                    report.found("store.db", line)
            for seq, crc, body in connection.execute("SELECT seq, crc, body FROM intents"):
                report.rows += 1
                if crc32(body) != crc:
                    report.found(f"store.db, row {seq} of intents", "the row does not match its checksum")
            for body, crc in connection.execute("SELECT body, crc FROM checkpoint"):
                if crc32(body) != crc:
                    report.found("store.db, checkpoint", "the row does not match its checksum")
        except UNREADABLE as error:
            known = of_store(error, copy)
            if not isinstance(known, Damaged):
                raise known from error
            report.found("store.db", str(error))


# The log.


def _check_log(look: Look, report: AuditReport) -> Position:
    """Check the log; returns the end of what was checked: later frames of a running engine do not count."""
    for damage in inspect.verify(look):
        report.found(f"{damage.file} at {damage.offset}", damage.what)
    segments = inspect.segments(look)
    end = segments[-1].last if segments else 0
    try:
        follows: int | None = None
        for position, frame in inspect.scan(look, until=end):
            report.frames += 1
            report.records += frame.count
            _check_frame(position, frame, follows, report)
            follows = frame.first + frame.count
    except Damaged as error:
        if not report.findings:  # otherwise it is already in the list
            report.found("log", error.message)
    return end


def _check_frame(position: Position, frame: Frame, follows: int | None, report: AuditReport) -> None:
    place = f"position {position}"
    if follows is not None and frame.first != follows:
        report.found(place, f"the frame begins with record {frame.first}, but {follows} was to follow")
    try:
        count = len(codec.decode(frame.body))
    except Unreadable as error:
        report.found(place, f"the records cannot be read: {error}")
        return
    if count != frame.count:
        report.found(place, f"the frame says {frame.count} records and holds {count}")


# The state that both lead to.


class _Reader:
    """The log for `recover`, without opening it."""

    def __init__(self, look: Look, end: Position) -> None:
        self._look = look
        self._end = end
        self.identity = read_identity(look.disk, look.directory) or ""

    async def start(self) -> Position:
        return self._look.firsts[0] if self._look.firsts else 0

    async def tail(self) -> Position:
        return self._end

    async def read(self, start: Position) -> AsyncIterator[tuple[Position, Frame]]:
        for found in inspect.scan(self._look, start, until=self._end):
            yield found


def _replay(look: Look, end: Position, copy: Path, report: AuditReport) -> None:
    try:
        with closing(SqliteStore(copy)) as store:
            checkpoint = store.load()
            done = checkpoint.records if checkpoint is not None else 0
            kernel, _ = asyncio.run(recover(_Reader(look, end), store))
            report.replayed = kernel.state.records - done
            report.intents = sum(kernel.state.counts)
            invariants.check(kernel.state)
    except Damaged as error:
        report.found("log and store", error.message)
    except (DuetimeError, OSError, MemoryError):
        raise  # says nothing about the folder
    except Exception as error:
        report.found("log and store", f"the records do not add up: {error!r}")
