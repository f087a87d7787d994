"""What the shop has done. A step of an order is written once, however often its task runs."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

_TABLES = """
CREATE TABLE IF NOT EXISTS steps (number TEXT, step TEXT, detail TEXT, PRIMARY KEY (number, step));
CREATE TABLE IF NOT EXISTS outages (service TEXT PRIMARY KEY, calls INTEGER);
CREATE TABLE IF NOT EXISTS calls (service TEXT, number TEXT);
"""


@contextmanager
def _database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(os.environ.get("SHOP_DB", "shop.db"), timeout=30)) as database:
        database.executescript(_TABLES)
        with database:
            yield database


def write(number: str, step: str, detail: str = "") -> None:
    """Write down a step of an order. A second time changes nothing."""
    with _database() as database:
        database.execute("INSERT OR IGNORE INTO steps VALUES (?, ?, ?)", (number, step, detail))


def steps(number: str) -> dict[str, str]:
    """The steps of an order."""
    with _database() as database:
        return dict(database.execute("SELECT step, detail FROM steps WHERE number = ?", (number,)).fetchall())


def count(step: str) -> int:
    """The number of orders with this step."""
    with _database() as database:
        found = database.execute("SELECT count(*) FROM steps WHERE step = ?", (step,))
        return int(found.fetchone()[0])


def break_down(service: str, calls: int) -> None:
    """The next calls of this service fail."""
    with _database() as database:
        database.execute("INSERT OR REPLACE INTO outages VALUES (?, ?)", (service, calls))


def call(service: str, number: str) -> None:
    """Call a service of another company, which may be down."""
    with _database() as database:
        database.execute("INSERT INTO calls VALUES (?, ?)", (service, number))
        down = database.execute(
            "UPDATE outages SET calls = calls - 1 WHERE service = ? AND calls > 0", (service,)
        ).rowcount
    if down:
        raise ConnectionError(f"{service} does not answer")


def calls(service: str) -> int:
    """How often a service was called."""
    with _database() as database:
        found: int = database.execute("SELECT count(*) FROM calls WHERE service = ?", (service,)).fetchone()[
            0
        ]
        return found
