"""Delete the rows of forgotten intents. The marks already hide them; this only frees the space.

Rows are deleted in the order in which their intents ended: chunks are taken from the front of an index, and
the first row that must stay ends the search. A row with a key or claim is deleted once its intent also ended
before the window of keys, which is at most that window later than necessary.
"""

from __future__ import annotations

import sqlite3

from duetime.limits import PURGE_ROWS_MIN
from duetime.protocol.checkpoint import Marks
from duetime.protocol.intent import DEAD_LETTERED

# Rows deleted per transaction, and the minimum per checkpoint (if there are as many to delete).
_CHUNK = 5_000
# More rows are deleted when more are written: a store that is filled fast is emptied faster.
_PACE = 2

_DEAD = f"ended > 0 AND status = {int(DEAD_LETTERED)}"
_USUAL = f"ended > 0 AND status <> {int(DEAD_LETTERED)} AND key IS NULL AND claim IS NULL"
_KEYED = f"ended > 0 AND status <> {int(DEAD_LETTERED)} AND (key IS NOT NULL OR claim IS NOT NULL)"


def purge(writer: sqlite3.Connection, marks: Marks, written: int = 0) -> None:
    """Delete rows below the marks, oldest first; bounded, but enough to keep up with the rows written."""
    most = max(PURGE_ROWS_MIN, _PACE * written)
    forever = 1 << 62
    _by_end(writer, _USUAL, marks, forever, most)
    _by_end(writer, _KEYED, marks, marks.key_before_ms, most)
    # A dead letter may also have a key; few do, so the ones kept for their key are simply examined again.
    query = (
        f"DELETE FROM intents WHERE seq IN (SELECT seq FROM intents WHERE {_DEAD} AND finished_at_ms < :dead"
        f" AND ((key IS NULL AND claim IS NULL) OR created_at_ms < :key OR finished_at_ms < 0)"
        f" ORDER BY finished_at_ms LIMIT {_CHUNK})"
    )
    for _ in range(0, most, _CHUNK):
        gone = writer.execute(query, {"dead": marks.dead_before_ms, "key": marks.key_before_ms}).rowcount
        if gone < _CHUNK:
            break


def _by_end(writer: sqlite3.Connection, kind: str, marks: Marks, before_ms: int, most: int) -> None:
    """Delete rows of one kind from the front of the index, up to the end time `before_ms`."""
    for _ in range(0, most, _CHUNK):
        last = _last_below(writer, kind, marks, before_ms)
        if last is None:
            break
        writer.execute(f"DELETE FROM intents WHERE {kind} AND ended <= ?", (last,))


def _last_below(writer: sqlite3.Connection, kind: str, marks: Marks, before_ms: int) -> int | None:
    """The end of the next chunk to delete. Intents end in time order, so the first one that must stay ends
    the search."""
    last: int | None = None
    columns = "ended, finished_at_ms, created_at_ms"
    query = f"SELECT {columns} FROM intents WHERE {kind} ORDER BY ended LIMIT {_CHUNK}"
    for ended, finished_at_ms, created_at_ms in writer.execute(query):
        # A key's window begins at the creation of its intent, and if the clock was set back, that may be
        # after the intent's end. Rows that the marks do not hide must stay, or a replay finds what the first
        # run did not.
        if finished_at_ms >= before_ms or (created_at_ms >= before_ms and finished_at_ms >= 0):
            break
        if finished_at_ms >= marks.finished_before_ms and ended > marks.ended_to:
            break
        last = ended
    return last
