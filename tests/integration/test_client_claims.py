"""Only one of them, for those who write Python: on a folder, in memory and on a server alike."""

from __future__ import annotations

import pytest

from duetime import App, Client, Status, Unique, errors
from duetime.client.http.request_types import NewIntent
from duetime.wire.intent import UniqueKey
from tests.integration.asynchronous import asynchronous

NOBODY = {"name": "nobody"}


@pytest.fixture(params=["memory", "folder", "server"])
def app(request, tmp_path):
    if request.param == "server":
        return App(request.getfixturevalue("server").url)
    return App(":memory:" if request.param == "memory" else str(tmp_path / "data"))


def registered(app):
    @app.task(name="claims.work", queue="claims-nobody")
    def work(number: int) -> int:
        return number

    return work.delay("1h")


@asynchronous
async def test_a_unique_key_gives_the_same_handle(app, fresh):
    work, key = registered(app), fresh()
    async with app:
        first = await work.options(unique=Unique(key)).schedule(1)
        again = await work.options(unique=Unique(key)).schedule(2)
        assert again.id == first.id
        assert (await first.view()).unique == UniqueKey(key=key)
        with pytest.raises(errors.KeyHeld) as refused:
            await work.options(unique=Unique(key), on_duplicate="reject").schedule(3)
        assert refused.value.details["intentId"] == first.id
        await first.cancel()
        other = await work.options(unique=Unique(key)).schedule(4)
        assert other.id != first.id


@asynchronous
async def test_a_collapse_key_keeps_the_newest(app, fresh):
    work, key = registered(app), fresh()
    async with app:
        first = await work.options(collapse_key=key, collapse="throttle").schedule(1)
        second = await work.options(collapse_key=key, collapse="throttle", delay="9h").schedule(2)
        assert await first.status() is Status.CANCELED
        assert (await second.view()).execute_at == (await first.view()).execute_at
        assert (await first.why()).code == "replaced"
        third = await work.options(collapse_key=key, delay="9h").schedule(3)
        assert (await third.view()).execute_at > (await first.view()).execute_at


@asynchronous
async def test_many_cannot_have_one_key(app):
    work = registered(app)
    async with app:
        for options in ({"unique": Unique("k")}, {"collapse_key": "k"}):
            with pytest.raises(errors.InvalidField, match="Many"):
                await work.options(**options).schedule_many([(1,), (2,)])


@asynchronous
async def test_a_client_says_it_in_pythons_names(server, fresh):
    key = fresh()
    said: NewIntent = {"delay_ms": 3_600_000, "stream": NOBODY}
    async with Client(server.url) as client:
        first = await client.create(
            delay_ms=3_600_000, stream=NOBODY, unique={"key": key, "until": "TIME", "for_ms": 60_000}
        )
        assert first.unique is not None and (first.unique.key, first.unique.for_ms) == (key, 60_000)
        assert (
            await client.create(delay_ms=0, stream=NOBODY, unique=first.unique)
        ).intent_id == first.intent_id
        batch = await client.create_many([{**said, "unique": {"key": key}}, {**said, "collapse_key": key}])
        assert (batch.existing, batch.created) == (1, 1)
