"""The client against a real server: every call, async and plain."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import UTC, datetime, timedelta

import pytest

from duetime import errors
from duetime.api.access import tokens
from duetime.client.http.client import Client
from duetime.wire.intent import Callback, Redelivery
from tests.http.server import ServerProcess
from tests.integration.asynchronous import asynchronous
from tests.receiver import Say

HOUR_MS = 3_600_000
NOBODY = {"name": "nobody"}
LATER = datetime(2100, 1, 1, tzinfo=UTC)


@asynchronous
async def test_the_life_of_an_intent(server, fresh):
    id = fresh()
    async with Client(server.url) as client:
        made = await client.create(
            intent_id=id,
            delay_ms=HOUR_MS,
            task={"name": "t", "queue": "nobody"},
            payload={"order": 7},
            tags={"test": id},
            redelivery=Redelivery(max_attempts=2),
            priority="HIGH",
        )
        assert (made.intent_id, made.status, made.revision) == (id, "SCHEDULED", 1)
        assert made.task is not None and made.task.queue == "nobody" and made.payload == {"order": 7}
        assert made.redelivery.max_attempts == 2 and made.priority == 300 and made.tags == {"test": id}
        assert made.created_at is not None
        assert abs(made.execute_at - made.created_at - timedelta(hours=1)) < timedelta(seconds=1)
        assert await client.get(id) == made

        why = await client.why(id)
        assert why.code == "waiting-for-time" and "it is due in" in why.sentence
        patched = await client.patch(id, priority=5, deadline=made.execute_at + timedelta(days=1))
        assert patched.priority == 5 and patched.deadline is not None and patched.revision == 2
        assert (await client.patch(id, deadline=None, expected_revision=2)).deadline is None
        with pytest.raises(errors.RevisionMoved):
            await client.cancel(id, expected_revision=2)
        fired = await client.fire_now(id)
        assert fired.status == "DUE"
        assert (await client.why(id)).code == "no-worker"
        assert (await client.cancel(id)).status == "CANCELED"
        history = await client.history(id)
        assert [entry.status for entry in history.entries][-1] == "CANCELED"


def test_plain_programs_wait(server, fresh):
    with Client(server.url) as client:
        made = client.create(delay_ms=HOUR_MS, stream=NOBODY).wait()
        assert client.get(made.intent_id).wait(10).status == "SCHEDULED"
        assert client.cancel(made.intent_id).wait().status == "CANCELED"
        with pytest.raises(errors.NoSuchIntent):
            client.get(fresh()).wait()
        assert client.health().wait().status in ("UP", "DEGRADED")
    with pytest.raises(errors.Closed):
        client.health().wait()
    with client:  # and again
        assert client.health().wait().narrative


@asynchronous
async def test_many_at_once_are_answered_for_one_by_one(server, fresh):
    id = fresh()
    async with Client(server.url) as client:
        batch = await client.create_many(
            [
                {"intent_id": id, "delay_ms": HOUR_MS, "stream": NOBODY},
                {"intent_id": id, "delay_ms": HOUR_MS, "stream": NOBODY},
                {"delay_ms": HOUR_MS},
                {"delay_ms": HOUR_MS, "stream": NOBODY, "idempotency_key": id},
                {"delay_ms": HOUR_MS, "stream": NOBODY, "idempotency_key": id},
            ]
        )
        assert [each.status for each in batch.items] == [201, 409, 422, 201, 200]
        assert (batch.created, batch.existing, batch.failed) == (2, 1, 2)
        assert [each.error.error_code for each in batch.items if each.error] == [40904, 42209]


@asynchronous
async def test_lists_continue_page_after_page(server, fresh):
    tag = fresh()
    start = LATER
    async with Client(server.url) as client:
        await client.create_many(
            [
                {
                    "intent_id": f"{tag}.{number:04}",
                    "execute_at": start + timedelta(seconds=1_200 - number),
                    "stream": NOBODY,
                    "tags": {"test": tag},
                }
                for number in range(1_200)
            ]
        )
        page = await client.list(tags={"test": tag}, limit=3)
        assert [each.intent_id[-4:] for each in page.items] == ["1199", "1198", "1197"]
        second = await client.list(tags={"test": tag}, limit=3, cursor=page.next_cursor)
        assert [each.intent_id[-4:] for each in second.items] == ["1196", "1195", "1194"]
        since = start + timedelta(seconds=100)
        due = await client.list(tags={"test": tag}, limit=1, order="due", since=since)
        assert due.items[0].intent_id == f"{tag}.1100"
        every = [each.intent_id async for each in client.every(tags={"test": tag})]
        assert len(every) == 1_200 == len(set(every))
    with Client(server.url) as plain:
        assert [each.intent_id for each in plain.every(tags={"test": tag})] == every


@asynchronous
async def test_dead_letters(server, hooks, fresh):
    tag = fresh()
    url = hooks.says(tag, Say(400, b"no"))
    async with Client(server.url) as client:
        events = client.events(status="DEAD_LETTERED")
        async with contextlib.aclosing(events):
            waiting = asyncio.ensure_future(_next_of(events, {f"{tag}.{n}" for n in range(5)}))
            for number in range(5):
                await client.create(
                    intent_id=f"{tag}.{number}", delay_ms=300, tags={"test": tag}, callback=Callback(url=url)
                )
            await asyncio.wait_for(waiting, 30)
        page = await client.dead_letters.list(tags={"test": tag})
        assert {each.status for each in page.items} == {"DEAD_LETTERED"} and len(page.items) == 5
        error = page.items[0].last_error
        assert error is not None and error.http_status == 400
        assert len([each async for each in client.dead_letters.every(tags={"test": tag})]) == 5

        revived = await client.revive(f"{tag}.0", execute_at=LATER, payload=[1])
        assert revived.status == "SCHEDULED" and revived.attempts == 0 and revived.payload == [1]
        with pytest.raises(errors.NotDeadLettered):
            await client.revive(f"{tag}.0")
        done = await client.dead_letters.purge([f"{tag}.1", f"{tag}.0"])
        assert (done.matched, done.done, [each.intent_id for each in done.failed]) == (2, 1, [f"{tag}.0"])
        done = await client.dead_letters.purge(tags={"test": tag}, limit=2)
        assert (done.matched, done.done) == (2, 2)
        assert (await client.dead_letters.revive(tags={"test": tag})).done == 1


async def _next_of(events, ids: set[str]) -> None:
    async for event in events:
        ids.discard(event.intent_id)
        if not ids:
            return


@asynchronous
async def test_errors_are_those_of_the_engine(server, fresh):
    key = fresh()
    async with Client(server.url) as client:
        with pytest.raises(errors.TimeMissing) as caught:
            await client.create(stream=NOBODY)
        assert "executeAt" in caught.value.hint and caught.value.details["path"] == "$"
        with pytest.raises(errors.BadTarget):
            await client.create(delay_ms=1)
        with pytest.raises(errors.UnknownTier):
            await client.create(delay_ms=1, stream=NOBODY, precision_tier="SLOW")
        with pytest.raises(errors.InvalidField) as wrong:
            await client.create(delay_ms="soon", stream=NOBODY)  # type: ignore[arg-type]
        assert wrong.value.details["path"] == "$.delayMs"
        await client.create(delay_ms=HOUR_MS, stream=NOBODY, idempotency_key=key)
        with pytest.raises(errors.KeyReused):
            await client.create(delay_ms=1, stream=NOBODY, idempotency_key=key)
        with pytest.raises(errors.BadQuery):
            await client.list(limit=1_000_000)
        with pytest.raises(errors.NoSuchIntent):
            await client.history(key)


@asynchronous
async def test_the_server_itself(server, fresh):
    lane = f"task:{fresh()}"
    async with Client(server.url) as client:
        await client.create(delay_ms=0, task={"name": "t", "queue": lane.removeprefix("task:")})
        await client.pause(lane)
        paused = {each.name: each for each in await client.lanes()}[lane]
        assert paused.paused and paused.ready == 1
        await client.resume(lane)
        assert not {each.name: each for each in await client.lanes()}[lane].paused
        resized = await client.resize("economy", 77)
        assert (resized.tier, resized.concurrency) == ("ECONOMY", 77)
        scope = await client.chronoscope()
        assert {tier.tier: tier.permits.max for tier in scope.tiers}["ECONOMY"] == 77
        assert scope.counts["DUE"] >= 1
        await client.resize("economy", 50)
        assert (await client.segments())[0].bytes > 0
        assert "duetime_" in await client.metrics()
        assert (await client.health(deep=True)).vitals.memory_bytes > 0


@asynchronous
async def test_timeline_and_replay(server, fresh):
    id = fresh()
    async with Client(server.url) as client:
        made = await client.create(intent_id=id, delay_ms=HOUR_MS // 2, stream=NOBODY)
        timeline = await client.timeline(until=made.execute_at + timedelta(minutes=1), slots=10)
        assert timeline.total >= 1 and timeline.peak is not None and timeline.narrative
        life = await client.replay(id)
        assert (life.intent_id, life.status, life.steps[0].at) == (id, "SCHEDULED", made.created_at)
        past = await client.replay(at=made.created_at)
        assert past.counts["SCHEDULED"] >= 1 and past.log is not None
        assert past.log.written_at <= past.at == made.created_at


@asynchronous
async def test_tokens_and_roles(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    admin = tokens.new(tmp_path, "admin", "a")
    read = tokens.new(tmp_path, "read", "r")
    with ServerProcess(tmp_path) as server:
        async with Client(server.url, token=admin) as client:
            made = await client.create(delay_ms=HOUR_MS, stream=NOBODY)
        async with Client(server.url, token=read) as client:
            assert (await client.get(made.intent_id)).status == "SCHEDULED"
            with pytest.raises(errors.Forbidden):
                await client.cancel(made.intent_id)
        for wrong in ("duetime_wrong", None):
            async with Client(server.url, token=wrong) as client:
                with pytest.raises(errors.NoToken):
                    await client.get(made.intent_id)
                assert (await client.health()).status, "health is open to all"
    assert admin not in caplog.text and read not in caplog.text
