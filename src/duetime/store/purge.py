"""Delete the rows of forgotten intents. The marks hide them already; this only gives the room back."""

from __future__ import annotations

import sqlite3

from duetime.protocol.checkpoint import Marks
from duetime.protocol.intent import DEAD_LETTERED

# Rows deleted in one transaction, and transactions in one checkpoint: a purge never takes long.
_CHUNK = 5_000
_CHUNKS = 20

_USUAL = f"ended > 0 AND status <> {int(DEAD_LETTERED)} AND key IS NULL AND claim IS NULL"
_KEPT = f"ended > 0 AND (status = {int(DEAD_LETTERED)} OR key IS NOT NULL OR claim IS NOT NULL)"


def purge(writer: sqlite3.Connection, marks: Marks) -> None:
    """Delete what is below the marks, oldest first, a bounded amount at a time."""
    for _ in range(_CHUNKS):
        last = _last_below(writer, marks)
        if last is None:
            break
        writer.execute(f"DELETE FROM intents WHERE {_USUAL} AND ended <= ?", (last,))
    writer.execute(
        f"DELETE FROM intents WHERE seq IN (SELECT seq FROM intents WHERE {_KEPT}"
        f" AND finished_at_ms < CASE status WHEN {int(DEAD_LETTERED)} THEN :dead ELSE :finished END"
        f" AND finished_at_ms < max(:dead, :finished)"
        f" AND ((key IS NULL AND claim IS NULL) OR created_at_ms < :key OR finished_at_ms < 0)"
        f" LIMIT {_CHUNK})",
        {
            "dead": marks.dead_before_ms,
            "finished": marks.finished_before_ms,
            "key": marks.key_before_ms,
        },
    )


def _last_below(writer: sqlite3.Connection, marks: Marks) -> int | None:
    """The end of the next chunk to go. Intents end in the order of their time, so the first that stays
    ends the search."""
    last: int | None = None
    query = f"SELECT ended, finished_at_ms FROM intents WHERE {_USUAL} ORDER BY ended LIMIT {_CHUNK}"
    for ended, finished_at_ms in writer.execute(query):
        if finished_at_ms >= marks.finished_before_ms and ended > marks.ended_to:
            break
        last = ended
    return last
