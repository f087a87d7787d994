"""The outbox of SQLAlchemy with real databases: commit means scheduled, rollback means not."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

import msgspec
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from duetime import App, Status
from duetime.contrib.sqlalchemy import Outbox
from duetime.errors import InvalidField
from duetime.testing.time import ManualClock
from duetime.timefmt import moment_of
from tests.http.server import ServerProcess

WAIT_S = 60


@pytest.fixture
def engine(database):
    engine = sa.create_engine(database)
    yield engine
    engine.dispose()


@pytest.fixture
def outbox(engine) -> Outbox:
    outbox = Outbox()
    outbox.create(engine)
    return outbox


@pytest.fixture
def app(server, queue):
    with App(server.url) as app:
        yield app


@pytest.fixture
def receipt(app, queue):
    @app.task(name="shop.receipt", queue=queue)
    def receipt(order: int) -> int:
        return order

    return receipt


@pytest.fixture
def orders(server, queue):
    def orders() -> list[int]:
        found = server.ask("GET", f"/v1/intents?queue={queue}&limit=500").json["items"]
        return [intent["payload"][0][0] for intent in reversed(found)]

    return orders


def drain(relay) -> int:
    count: int = relay.drain().wait(WAIT_S)
    return count


def test_commit_means_scheduled_and_rollback_means_not(app, engine, outbox, receipt, orders):
    relay = outbox.relay(app, engine)
    with Session(engine) as session:
        id = outbox.schedule(session, receipt, 1)
        session.commit()
        outbox.schedule(session, receipt, 2)
        session.rollback()
        with session.begin_nested() as point:
            outbox.schedule(session, receipt, 3)
            point.rollback()
        outbox.schedule(session, receipt, 4)
        session.commit()
        outbox.schedule(session, receipt, 5)
        assert drain(relay) == 2  # what is not committed is not seen
        session.commit()
    with engine.begin() as connection:
        outbox.schedule(connection, receipt, 6)
    assert drain(relay) == 2
    assert orders() == [1, 4, 5, 6]
    assert app.handle(id).status().wait() is Status.DUE
    assert drain(relay) == 0


def test_invalid_arguments_are_refused_in_the_transaction(engine, outbox, receipt):
    with Session(engine) as session:
        with pytest.raises(InvalidField, match="'order'"):
            outbox.schedule(session, receipt, "one")
        with pytest.raises(InvalidField, match=r"\$\.callback"):
            outbox.add(session, callback={"adress": "http://localhost"})
        with pytest.raises(InvalidField, match="neither a session nor a connection"):
            outbox.schedule(engine, receipt, 1)
        assert not session.new


def test_any_intent_and_its_time(app, engine, outbox, receipt, server):
    with Session(engine) as session, session.begin():
        later = outbox.schedule(session, receipt.delay("1h"), 1)
        stream = outbox.add(session, stream={"name": "news"}, payload={"a": 1}, delay_ms=3_600_000)
        named = outbox.schedule(session, receipt.options(id=f"{later}-own"), 2)
    with Session(engine) as session:
        written = session.execute(sa.select(outbox.table.c.body, outbox.table.c.created_ms)).all()
    drain(outbox.relay(app, engine))
    for id, (body, created_ms) in zip((later, stream), written, strict=False):
        due = app.handle(id).view().wait().execute_at
        assert due == moment_of(created_ms + 3_600_000), "an hour from when it was written"
        assert msgspec.json.decode(body)["ackLevel"] == "DURABLE"
    assert server.ask("GET", f"/v1/intents/{stream}").json["payload"] == {"a": 1}
    assert named == f"{later}-own" and app.handle(named).view().wait().intent_id == named


def test_a_time_that_passed_meanwhile_is_now(app, server, engine, receipt, tmp_path):
    outbox = Outbox(clock=ManualClock(1_500_000_000_000))  # some years ago
    outbox.create(engine)
    with Session(engine) as session, session.begin():
        id = outbox.schedule(session, receipt.delay("10m"), 1)
    assert drain(outbox.relay(app, engine)) == 1
    assert app.handle(id).status().wait() is Status.DUE


def test_an_explicit_key_names_one_intent(app, engine, outbox, receipt, orders, queue):
    once = receipt.options(key=queue, delay="1h")
    with Session(engine) as session, session.begin():
        assert outbox.schedule(session, once, 1) == outbox.schedule(session, once, 1) == queue
        outbox.schedule(session, once, 2)  # another body: somebody made a mistake
    relay = outbox.relay(app, engine)
    assert drain(relay) == 2
    assert orders() == [1]
    assert relay.count().wait().refused == 1


def test_bad_rows_are_kept_and_do_not_delay_the_others(app, engine, outbox, receipt, orders, caplog):
    bodies = ["nonsense", "{},{}", '{"a": 1}', '{"idempotencyKey": "k", "delayMs": 0, "frobnicate": 1}']
    with Session(engine) as session, session.begin():
        outbox.schedule(session, receipt, 1)
        session.flush()
        for body in bodies:
            row = {"key": "by-hand", "body": body, "created_ms": 0, "retry_ms": 0}
            session.execute(outbox.table.insert().values(row))
        outbox.schedule(session, receipt.options(after=["nobody-knows"]), 2)
        outbox.schedule(session, receipt, 3)
    relay = outbox.relay(app, engine, batch=4)
    assert drain(relay) == 2
    assert orders() == [1, 3]
    assert relay.refused == 5 and relay.count().wait().refused == 5
    with engine.connect() as connection:
        errors = [error for (error,) in connection.execute(sa.select(outbox.table.c.error))]
    assert all(error[:5].isdigit() for error in errors) and "frobnicate" in errors[3]
    assert caplog.text.count("is refused and kept") == 5
    with engine.begin() as connection:  # somebody puts it right
        connection.execute(outbox.table.delete().where(outbox.table.c.body.in_(bodies)))
        last = connection.execute(sa.select(outbox.table.c.body)).scalar_one()
        fixed = msgspec.json.decode(last) | {"after": []}
        connection.execute(outbox.table.update().values(body=msgspec.json.encode(fixed).decode()))
    assert relay.reopen().wait() == 1
    assert drain(relay) == 1
    assert orders() == [1, 3, 2]


@pytest.fixture
def here():
    """An engine in this process, and a function that says when it runs."""
    app, ran = App(":memory:"), threading.Event()

    @app.task
    def ring() -> None:
        ran.set()

    with app:
        yield app, ring, ran


def test_a_commit_wakes_the_relay(here, engine, outbox):
    app, ring, ran = here
    with outbox.relay(app, engine, poll_s=3_600), scoped_session(sessionmaker(engine))() as session:
        with session.begin_nested():
            outbox.schedule(session, ring)
        session.commit()
        assert ran.wait(WAIT_S)


def test_a_row_of_another_process_is_found_by_looking(here, engine, outbox):
    app, ring, ran = here
    stranger = Outbox()
    with outbox.relay(app, engine, poll_s=0.05):
        with Session(engine) as session, session.begin():
            stranger.schedule(session, ring)
        assert ran.wait(WAIT_S)


def test_several_relays_at_once(server, engine, outbox, receipt, orders):
    with Session(engine) as session, session.begin():
        for number in range(300):
            outbox.schedule(session, receipt, number)

    async def main():
        async with App(server.url) as app:
            relays = [outbox.relay(app, engine, batch=20) for _ in range(4)]
            return await asyncio.gather(*(relay.drain() for relay in relays))

    relayed = asyncio.run(main())
    assert sorted(orders()) == list(range(300))
    if engine.dialect.name == "postgresql":
        assert sum(relayed) == 300, "rows that one has taken are left alone by the others"


def test_async_sessions(server, database, outbox, queue, orders):
    async def main() -> None:
        engine = create_async_engine(database.replace("sqlite:", "sqlite+aiosqlite:"))
        app = App(server.url)

        @app.task(name="shop.receipt", queue=queue)
        async def receipt(order: int) -> int:
            return order

        there = asyncio.Event()
        async with app, outbox.relay(app, engine, poll_s=3_600) as relay:
            async with async_sessionmaker(engine)() as session:
                outbox.schedule(session, receipt, 1)
                await session.rollback()
                id = outbox.schedule(session, receipt, 2)
                app.observe(lambda change: there.set() if change.intent_id == id else None)
                await session.commit()
            await asyncio.wait_for(there.wait(), WAIT_S)
            async with engine.begin() as connection:
                await connection.execute(
                    outbox.table.insert().values(key="x", body="x", created_ms=0, retry_ms=0)
                )
            await relay.drain()
            assert (await relay.count()).refused == 1
            assert await relay.reopen() == 1
        await engine.dispose()

    asyncio.run(main())
    assert orders() == [2]


def test_a_full_queue_holds_up_no_other(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    outbox = Outbox()
    outbox.create(engine)
    app = App("http://localhost:1")

    @app.task(queue="full")
    def much(number: int) -> None: ...

    @app.task(queue="free")
    def little(number: int) -> None: ...

    with ServerProcess(tmp_path / "data", limits__lane_pending_max=3) as server:
        app.rewire(server.url)
        with app, Session(engine) as session:
            for number in range(5):
                outbox.schedule(session, much, number)
            for number in range(2):
                outbox.schedule(session, little, number)
            session.commit()
            relay = outbox.relay(app, engine)
            drain(relay)
            counts = {
                queue: len(server.ask("GET", f"/v1/intents?queue={queue}").json["items"])
                for queue in ("full", "free")
            }
            assert counts["free"] == 2 and counts["full"] <= 3
            waiting = relay.count().wait()
            assert waiting.refused == 0 and waiting.waiting == 5 - counts["full"]


@contextmanager
def heard() -> Iterator[SimpleQueue[str]]:
    """What Duetime logs, as it comes."""
    lines: SimpleQueue[str] = SimpleQueue()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.put(record.getMessage())

    handler, logger = Handler(), logging.getLogger("duetime")
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)


def test_a_server_that_was_away(tmp_path, caplog):
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    outbox = Outbox()
    outbox.create(engine)
    server = ServerProcess(tmp_path / "data").start()
    server.stay()
    app = App(server.url)

    @app.task
    def ring(number: int) -> None: ...

    caplog.set_level(logging.INFO, "duetime")
    try:
        with app, outbox.relay(app, engine) as relay, heard() as lines:
            server.kill()
            with Session(engine) as session, session.begin():
                id = outbox.schedule(session, ring, 1)
            while not lines.get(timeout=WAIT_S).startswith("The relay waits: Unreachable"):
                pass
            server.start()
            while lines.get(timeout=WAIT_S) != "The relay continues.":
                pass
            assert relay.count().wait(WAIT_S).waiting == 0
            assert app.handle(id).status().wait() is Status.DUE
            assert relay.refused == 0
    finally:
        server.kill()


def test_an_engine_in_this_process(tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    outbox = Outbox()
    outbox.create(engine)
    app = App(str(tmp_path / "data"))

    @app.task(tier="FAST")
    async def double(number: int) -> int:
        return 2 * number

    with app, Session(engine) as session:
        ids = [outbox.schedule(session, double, number) for number in (1, 2, 3)]
        outbox.add(session, callback={"url": "http://localhost:1"})
        session.commit()
        relay = outbox.relay(app, engine)
        assert drain(relay) == 3
        assert [app.handle(id).result("30s").wait() for id in ids] == [2, 4, 6]
        assert relay.count().wait().refused == 1, "webhooks are for servers"
