"""An outbox for SQLAlchemy 2: intents are written in the application's transaction and relayed after its
commit.

    outbox = Outbox(Base.metadata)

    with Session(engine) as session, session.begin():
        session.add(order)
        outbox.schedule(session, send_receipt, order.number)  # committed together, or not at all

`outbox.relay(app, engine)` sends committed rows to Duetime. Sessions, async sessions and connections are
accepted.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, Unpack

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.orm import Session, registry, scoped_session

from duetime.client.app.app import App
from duetime.client.app.task import Planned
from duetime.client.http.request_types import NewIntent
from duetime.clock import Clock, SystemClock
from duetime.contrib.outbox import rows as outbox_rows
from duetime.contrib.outbox.rows import TABLE, Count, NewRow, Row, Rows, Settled
from duetime.contrib.relay import Relay
from duetime.contrib.threads import InThread
from duetime.errors import InvalidField
from duetime.limits import KEY_CHARS_MAX, RELAY_BATCH, RELAY_POLL_S

if TYPE_CHECKING:  # asyncio support needs greenlet, which only async programs install
    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_scoped_session

    Transaction = Session | AsyncSession | scoped_session[Any] | async_scoped_session[Any] | Connection

P = ParamSpec("P")
R = TypeVar("R")

# Databases with row locks and SKIP LOCKED.
_LOCKING: Final = frozenset({"postgresql", "mysql", "mariadb", "oracle"})
_WROTE: Final = "duetime_outbox"


class Outbox:
    """A table of intents beside the application's own tables."""

    def __init__(
        self,
        metadata: sa.MetaData | None = None,
        *,
        table: str = TABLE,
        schema: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        """With the application's `metadata`, the table is created and migrated with the others."""
        self._clock = clock if clock is not None else SystemClock()
        self._relays: weakref.WeakSet[Relay] = weakref.WeakSet()
        self.table = table_in(metadata if metadata is not None else sa.MetaData(), table, schema)
        # A mapped class, because `add` of a session does no I/O, also in an async session.
        self._row: Any = type("OutboxRow", (), {})
        registry(metadata=self.table.metadata).map_imperatively(self._row, self.table)

    def create(self, engine: Engine) -> None:
        """Create the table if it does not exist. With migrations, create it there instead."""
        self.table.create(engine, checkfirst=True)

    def schedule(self, within: Transaction, task: Planned[P, R], /, *args: P.args, **kwargs: P.kwargs) -> str:
        """Schedule a call of a function when this transaction commits. Returns the id of the intent.

        If the task's options contain a `key`, returns the key: it may name an earlier intent.
        """
        return self._keep(within, outbox_rows.of_task(task, args, kwargs, self._clock.now_ms()))

    def add(self, within: Transaction, /, **intent: Unpack[NewIntent]) -> str:
        """Schedule any intent, with the arguments of `Client.create`, such as a webhook or a stream."""
        return self._keep(within, outbox_rows.of_fields(intent, self._clock.now_ms()))

    def relay(
        self,
        app: App,
        engine: Engine | AsyncEngine,
        *,
        batch: int = RELAY_BATCH,
        poll_s: float = RELAY_POLL_S,
    ) -> Relay:
        """A relay that sends committed rows to Duetime. Commits in this process notify it."""
        relay = Relay(app, rows_of(self.table, engine), batch=batch, poll_s=poll_s, clock=self._clock)
        self._relays.add(relay)
        return relay

    def nudge(self) -> None:
        """Notify the relays of this process: there may be a new row."""
        for relay in tuple(self._relays):
            relay.nudge()

    def _keep(self, within: Transaction, row: NewRow) -> str:
        values = {"key": row.key, "body": row.body, "created_ms": row.created_ms, "retry_ms": 0}
        if isinstance(within, Connection):
            within.execute(self.table.insert().values(values))
            return row.name
        found: Any = within.registry() if hasattr(within, "registry") else within  # a scoped session
        session = getattr(found, "sync_session", found)
        if not isinstance(session, Session):
            raise InvalidField(
                f"{type(within).__name__} is neither a session nor a connection.",
                hint="Pass the Session, AsyncSession or Connection of the transaction.",
            )
        kept = self._row()
        for name, value in values.items():
            setattr(kept, name, value)
        session.add(kept)
        self._listen(session)
        return row.name

    def _listen(self, session: Session) -> None:
        if _WROTE not in session.info:
            event.listen(session, "after_commit", self._committed)
        session.info[_WROTE] = True

    def _committed(self, session: Session) -> None:
        if session.info.get(_WROTE):
            self.nudge()


def table_in(metadata: sa.MetaData, name: str, schema: str | None = None) -> sa.Table:
    """The table of an outbox."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite increments only INTEGER keys
    return sa.Table(
        name,
        metadata,
        sa.Column("id", number, primary_key=True, autoincrement=True),
        sa.Column("key", sa.String(KEY_CHARS_MAX), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("created_ms", sa.BigInteger, nullable=False),
        sa.Column("retry_ms", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("error", sa.Text, nullable=True),
        schema=schema,
    )


def rows_of(table: sa.Table, engine: Engine | AsyncEngine) -> Rows:
    """The table as `Rows`, for a relay."""
    statements = Statements(table, engine.dialect.name)
    if isinstance(engine, Engine):
        return InThread(_BlockingRows(statements, engine))
    from duetime.contrib.sqlalchemy_async import AsyncRows

    return AsyncRows(statements, engine)


class Statements:
    """The SQL statements, for any connection."""

    def __init__(self, table: sa.Table, dialect: str) -> None:
        self._table = table
        self.locking = dialect in _LOCKING

    def take(self, connection: Connection, count: int, now_ms: int) -> list[Row]:
        c = self._table.c
        wanted = sa.select(c.id, c.body).where(c.error.is_(None), c.retry_ms <= now_ms)
        wanted = wanted.order_by(c.id).limit(count)
        if self.locking:
            wanted = wanted.with_for_update(skip_locked=True)
        return [Row(id, body) for id, body in connection.execute(wanted)]

    def settle(self, connection: Connection, settled: Settled) -> None:
        table, id = self._table, self._table.c.id
        if settled.done:
            connection.execute(table.delete().where(id.in_(settled.done)))
        for row, reason in settled.refused:
            connection.execute(table.update().where(id == row).values(error=reason))
        for row, retry_ms in settled.later:
            connection.execute(table.update().where(id == row).values(retry_ms=retry_ms))

    def count(self, connection: Connection) -> Count:
        error = self._table.c.error
        all, refused = connection.execute(
            sa.select(sa.func.count(), sa.func.count(error)).select_from(self._table)
        ).one()
        return Count(all - refused, refused)

    def reopen(self, connection: Connection) -> int:
        error = self._table.c.error
        return connection.execute(self._table.update().where(error.is_not(None)).values(error=None)).rowcount


class _BlockingRows:
    """The table on a blocking engine."""

    def __init__(self, statements: Statements, engine: Engine) -> None:
        self._statements = statements
        self._engine = engine
        self._connection: Connection | None = None

    def take(self, count: int, now_ms: int) -> list[Row]:
        self.let_go()  # an earlier pass may have been interrupted
        self._connection = self._engine.connect()
        rows = self._statements.take(self._connection, count, now_ms)
        if not self._statements.locking:
            self._connection.rollback()  # hold no lock while waiting for Duetime
        return rows

    def settle(self, settled: Settled) -> None:
        assert self._connection is not None, "rows are taken before they are settled"
        self._statements.settle(self._connection, settled)
        self._connection.commit()
        self.let_go()

    def let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def count(self) -> Count:
        with self._engine.connect() as connection:
            return self._statements.count(connection)

    def reopen(self) -> int:
        with self._engine.begin() as connection:
            return self._statements.reopen(connection)

    def close(self) -> None:
        self.let_go()
