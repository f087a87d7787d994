"""Many intents at once, found and changed by a filter: on a folder, in memory and on a server alike."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from duetime import App, Reject, Status, errors
from duetime.client.app import dead_letters
from duetime.client.http.client import Client
from tests.integration.asynchronous import asynchronous

LATER = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["folder", "memory", "server"])
def app(request, tmp_path):
    if request.param == "server":
        return App(request.getfixturevalue("server").url)
    return App(":memory:" if request.param == "memory" else tmp_path / "data")


@pytest.fixture
def embedded(tmp_path):
    return App(tmp_path / "data")


def made(app, fresh):
    queue = fresh()

    @app.task(name=f"{queue}.send", queue=queue)
    async def send(number: int) -> None: ...

    @app.task(name=f"{queue}.drop", queue=queue, tier="FAST")
    async def drop(number: int) -> None: ...

    return queue, send, drop


def ids(found):
    return [intent.intent_id for intent in found]


@asynchronous
async def test_find_takes_every_filter(app, fresh):
    queue, send, drop = made(app, fresh)
    async with app:
        ada = await send.options(tags={"customer": "ada", "kind": queue}).at(LATER).schedule(1)
        bob = await drop.options(tags={"customer": "bob", "kind": queue}).delay("1h").schedule(2)
        await ada.cancel()
        for filter, found in [
            ({"queue": queue}, [bob.id, ada.id]),
            ({"queue": queue, "status": "canceled"}, [ada.id]),
            ({"queue": queue, "status": ["CANCELED", "scheduled"]}, [bob.id, ada.id]),
            ({"tags": {"customer": "ada", "kind": queue}}, [ada.id]),
            ({"task": drop.name}, [bob.id]),
            ({"queue": queue, "tier": "fast"}, [bob.id]),
            ({"queue": queue, "since": LATER}, [ada.id]),
            ({"queue": queue, "until": LATER}, [bob.id]),
            ({"queue": queue, "entity": "Account"}, []),
            ({"queue": queue, "before": bob.id}, [ada.id]),
            ({"queue": queue, "before": ada.id}, []),
        ]:
            assert ids(await app.find(**filter)) == found, filter
        with pytest.raises(errors.NoSuchIntent):
            await app.find(before="nobody")


@asynchronous
async def test_cancel_by_filter_counts_and_goes_on_in_slices(app, fresh, monkeypatch):
    monkeypatch.setattr(dead_letters, "BULK_SLICE", 7)
    _, send, drop = made(app, fresh)
    async with app:
        sent = await send.at(LATER).schedule_many((n,) for n in range(30))
        kept = await drop.at(LATER).schedule(1)
        await sent[3].cancel()
        assert await app.cancel(task=send.name) == 29
        assert {view.status for view in await app.find(task=send.name)} == {Status.CANCELED}
        assert await kept.status() is Status.SCHEDULED
        assert await app.cancel(task=send.name) == 0


@asynchronous
async def test_a_cancel_needs_a_filter(app, fresh):
    _, send, _ = made(app, fresh)
    async with app:
        handle = await send.at(LATER).schedule(1)
        with pytest.raises(errors.InvalidField, match="needs a filter"):
            await app.cancel()
        with pytest.raises(errors.InvalidField, match="ACKED"):
            await app.cancel(task=send.name, status="acked")
        assert await handle.status() is Status.SCHEDULED


@asynchronous
async def test_dead_letters_are_revived_and_purged_by_filter(embedded, monkeypatch):
    monkeypatch.setattr(dead_letters, "BULK_SLICE", 2)
    app, broken = embedded, True

    @app.task(queue="mail")
    async def send(number: int) -> int:
        if broken:
            raise Reject("no such address")
        return number

    @app.task(queue="other")
    async def other() -> None:
        raise Reject("never")

    async with app:
        handles = await send.schedule_many((n,) for n in range(5))
        lost = await other.schedule()
        for handle in [*handles, lost]:
            with pytest.raises(errors.NotAcked):
                await handle.result()
        assert len(await app.dead_letters.list()) == 6
        assert ids(await app.dead_letters.list(queue="other")) == [lost.id]
        with pytest.raises(errors.InvalidField, match="always"):
            app.dead_letters.list(status="acked")
        with pytest.raises(errors.InvalidField, match="all=True"):
            app.dead_letters.revive()
        with pytest.raises(errors.InvalidField, match="DEAD_LETTERED"):
            await app.dead_letters.purge(status="acked", queue="mail")
        broken = False
        assert await app.dead_letters.revive(queue="mail") == 5
        assert [await handle.result() for handle in handles] == [0, 1, 2, 3, 4]
        assert await app.dead_letters.purge(all=True) == 1
        assert await app.dead_letters.list() == []


def test_a_wrong_filter_is_refused_where_it_is_written(embedded):
    for filter in ({"status": "gone"}, {"tier": "SLOW"}, {"queue": ""}, {"tags": {"a": 1}}, {"name": "x"}):
        with pytest.raises(errors.DuetimeError):
            embedded.cancel(**filter)
    with pytest.raises(errors.InvalidField, match="at least 1"):
        embedded.find(limit=0)


@asynchronous
async def test_a_client_cancels_up_to_a_limit_and_continues(server, fresh):
    app = App(server.url)
    queue, send, _ = made(app, fresh)
    async with app, Client(server.url) as client:
        handles = await send.at(LATER).schedule_many((n,) for n in range(5))
        first = await client.cancel_many(queue=queue, limit=3)
        assert (first.matched, first.done, first.failed) == (3, 3, [])
        rest = await client.cancel_many(queue=queue, cursor=first.next_cursor)
        assert (rest.done, rest.next_cursor) == (2, None)
        assert {await handle.status() for handle in handles} == {Status.CANCELED}
        with pytest.raises(errors.InvalidField, match="needs a filter"):
            await client.cancel_many()
