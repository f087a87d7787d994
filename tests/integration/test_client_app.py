"""An App on a server's address: the same calls as on a folder."""

from __future__ import annotations

import asyncio
import queue
import socket
import threading
from datetime import UTC, datetime

import pytest

from duetime import App, Retry, Status, Transition, errors
from duetime.api.access import tokens
from duetime.client.http.client import Client
from duetime.limits import OWN_STREAMS_MAX
from duetime.protocol.command import Pause, Resize, Resume
from duetime.wire.intent import EntityTarget
from tests.http.server import ServerProcess
from tests.integration.asynchronous import asynchronous
from tests.receiver import Say
from tests.worker.waiting import until

LATER = datetime(2100, 1, 1, tzinfo=UTC)


class Account:
    """Never made here: its messages run where the workers are."""

    def __init__(self, id: str) -> None:
        raise AssertionError("an entity of a server does not run in this process")

    def deposit(self, amount: int) -> None: ...


def made(url: str) -> tuple:
    """An app and its functions, none of which may run."""
    app = App(url)

    @app.task(name="mail.send", queue="nobody", tier="FAST", retry=Retry(max_attempts=3), tags={"a": "b"})
    def send(to: str, copies: int = 1) -> int:
        raise AssertionError("a task of a server does not run in this process")

    return app, send, app.entity(Account)


@asynchronous
async def test_a_scheduled_intent_is_on_the_server(server, fresh):
    app, send, accounts = made(server.url)
    async with app, Client(server.url) as client:
        handle = await send.at(LATER).schedule("me", copies=2)
        shown = await client.get(handle.id)
        assert shown.task is not None and (shown.task.name, shown.task.queue) == ("mail.send", "nobody")
        assert shown.payload == [["me"], {"copies": 2}] and shown.precision_tier == "FAST"
        assert shown.execute_at == LATER and shown.redelivery.max_attempts == 3 and shown.tags == {"a": "b"}

        view = await handle.view()
        assert view == shown, "the same intent, whichever way it is asked for"
        assert await handle.status() is Status.SCHEDULED
        assert (await handle.why()).code == "waiting-for-time"
        assert [entry.status for entry in await handle.history()] == [Status.SCHEDULED]

        message = await accounts("42").tell("deposit", 5)
        assert (await message.view()).entity == EntityTarget(type="Account", id="42", message="deposit")
        now = await send.schedule("now")
        assert (await now.why()).code == "no-worker", "it waits for a worker, and does not run here"


@asynchronous
async def test_handles_change_intents(server):
    app, send, _ = made(server.url)
    async with app:
        handle = await send.delay("1h").schedule("me")
        patched = await handle.patch(at=LATER, priority=7, tags={"c": "d"}, retry=Retry(max_attempts=9))
        assert patched.execute_at == LATER and patched.priority == 7
        assert patched.tags == {"c": "d"} and patched.redelivery.max_attempts == 9
        assert (await handle.fire()).status is Status.DUE
        assert (await handle.cancel()).status is Status.CANCELED
        with pytest.raises(errors.StateForbids):
            await handle.fire()
        with pytest.raises(errors.NotDeadLettered):
            await handle.revive()
        with pytest.raises(errors.NotAcked, match="CANCELED"):
            await handle.result()
        for missing in (app.handle("no-such").view(), app.handle("no-such").result()):
            with pytest.raises(errors.NoSuchIntent):
                await missing


@asynchronous
async def test_many_are_sent_together(server, fresh):
    app, _, _ = made(server.url)
    queue = fresh()

    @app.task(name="many", queue=queue)
    def many(number: int) -> None: ...

    async with app:
        handles = await many.at(LATER).schedule_many((number,) for number in range(4_500))
        assert len({handle.id for handle in handles}) == 4_500
        found = await app.find(queue=queue, limit=5_000)
        assert {each.intent_id for each in found} == {handle.id for handle in handles}
        assert [each.intent_id for each in await app.find(queue=queue, limit=2)] == [
            h.id for h in handles[:-3:-1]
        ]
        assert await app.find(status="acked", queue=queue) == []
        with pytest.raises(errors.NoSuchIntent):
            await app.find(before="x")


@asynchronous
async def test_a_key_names_one_intent_however_often_it_is_asked(server, fresh):
    app, send, _ = made(server.url)
    keyed = send.options(key=fresh(), delay="1h")
    async with app:
        first = await keyed.schedule("me")
        for _ in range(20):  # a millisecond more or less must not make it another request
            assert (await keyed.schedule("me")).id == first.id
        with pytest.raises(errors.KeyReused):
            await keyed.schedule("you")
        id = fresh()
        await send.options(id=id, at=LATER).schedule("me")
        with pytest.raises(errors.IdExists):
            await send.options(id=id, at=LATER).schedule("me")


@asynchronous
async def test_a_lost_answer_makes_no_second_intent(proxy, fresh):
    app, _, _ = made(proxy.url)
    queue = fresh()

    @app.task(name="once", queue=queue)
    def once(number: int) -> None: ...

    async with app:
        proxy.lose_answers(2)
        handle = await once.at(LATER).schedule(1)
        proxy.lose_answers(1)
        handles = await once.at(LATER).schedule_many([(2,), (3,)])
        found = {each.intent_id for each in await app.find(queue=queue)}
        assert found == {handle.id, *(each.id for each in handles)}


@asynchronous
async def test_many_waiting_results_arrive_when_the_intents_end(server, hooks, fresh):
    """More than have a stream of their own, so that some share one."""
    path = fresh()
    url = hooks.hold(path)
    hooks.says(path, Say(200, b'{"done": true}'))
    app, _, _ = made(server.url)
    number = OWN_STREAMS_MAX + 20
    async with app, Client(server.url) as client:
        intents = [await client.create(delay_ms=0, callback={"url": url}) for _ in range(number)]
        handles = [app.handle(each.intent_id) for each in intents]
        waits = [asyncio.ensure_future(handle.result("60s")) for handle in handles]
        with pytest.raises(errors.WaitTimedOut):
            await handles[0].result("50ms")
        for _ in range(number):
            await asyncio.to_thread(hooks.take, path)
        assert not any(wait.done() for wait in waits)
        hooks.let_go(path)
        assert await asyncio.gather(*waits) == [{"done": True}] * number
        assert await handles[0].result() == {"done": True}, "and once more, at once"


@asynchronous
async def test_waiting_survives_a_cut_connection(proxy, server, fresh):
    app, send, _ = made(proxy.url)
    async with app, Client(server.url) as direct:
        handles = await send.at(LATER).schedule_many([(str(n),) for n in range(OWN_STREAMS_MAX + 5)])
        waits = [asyncio.ensure_future(handle.result()) for handle in handles]
        before = proxy.answered
        while proxy.answered < before + 2 * OWN_STREAMS_MAX:
            await direct.health()
        proxy.cut()
        for handle in handles:
            await direct.cancel(handle.id)
        for wait in waits:
            with pytest.raises(errors.NotAcked, match="CANCELED"):
                await asyncio.wait_for(wait, 30)


@asynchronous
async def test_observers_see_the_events_of_the_server(server, fresh):
    app, send, _ = made(server.url)
    id = fresh()
    seen: asyncio.Queue[Transition] = asyncio.Queue()

    @app.observe
    def keep(change: Transition) -> None:
        if change.intent_id.startswith(id):
            seen.put_nowait(change)
        raise ValueError("an observer that fails disturbs nobody")

    async with app:
        number = 0
        while seen.empty():  # until the stream is open
            number += 1
            await send.options(id=f"{id}.{number}", at=LATER).schedule("me")
        while (await asyncio.wait_for(seen.get(), 30)).intent_id != f"{id}.{number}":
            pass
        await app.handle(f"{id}.{number}").cancel()
        change = await asyncio.wait_for(seen.get(), 30)
        assert (change.previous_status, change.status) == (Status.SCHEDULED, Status.CANCELED)


@asynchronous
async def test_the_server_in_numbers_and_its_switches(server, fresh):
    app, _, _ = made(server.url)
    queue = fresh()

    @app.task(name="switched", queue=queue)
    def switched() -> None: ...

    async with app:
        handle = await switched.schedule()
        await app.ask(Pause(f"task:{queue}"))
        assert (await handle.why()).code == "paused"
        assert {lane.name: lane.paused for lane in await app.backend.lanes()}[f"task:{queue}"]
        await app.ask(Resume(f"task:{queue}"))
        assert (await handle.why()).code == "no-worker"
        await app.ask(Resize(4, 66))
        overview = await app.overview()
        assert overview.counts["DUE"] >= 1 and overview.at_ms > 0 and overview.epoch >= 1
        await switched.options(delay="1h").schedule()
        assert (await app.overview()).next_ms is not None
        assert {tier.name: tier.permits_max for tier in overview.tiers}["ECONOMY"] == 66
        await app.ask(Resize(4, 50))


@asynchronous
async def test_bare_intents_have_no_place_on_a_server(server):
    app, _, _ = made(server.url)
    async with app:
        with pytest.raises(errors.BadTarget, match="no default handler") as caught:
            await app.schedule({"a": 1})
        assert "Client.create" in caught.value.hint


def test_plain_programs(server):
    app, send, _ = made(server.url)
    with app:
        handle = send.at(LATER).schedule("me").wait()
        ended: list[BaseException] = []

        def wait() -> None:
            try:
                handle.result("30s").wait()
            except errors.NotAcked as error:
                ended.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        assert handle.cancel().wait().status is Status.CANCELED
        waiting.join(30)
        assert len(ended) == 1
    with app:
        assert handle.status().wait() is Status.CANCELED


def test_an_app_starts_while_its_server_is_down_and_works_when_it_is_up(tmp_path, caplog):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    app, send, _ = made(url)
    app.every("1h", id="hourly", args=("me",))(send)
    seen: queue.SimpleQueue[Transition] = queue.SimpleQueue()
    app.observe(seen.put)
    with app:
        [record] = caplog.records
        assert record.getMessage().startswith(f"The app waits for the server: {url} cannot be reached: ")
        with pytest.raises(
            errors.Unreachable, match=f"{url} cannot be reached: connection refused"
        ) as caught:
            send.schedule("me").wait()
        assert caught.value.retryable and caught.value.details["url"] == url
        with ServerProcess(tmp_path / "data", "--port", str(port)) as server:
            assert send.at(LATER).schedule("me").wait().status().wait() is Status.SCHEDULED
            until(lambda: server.ask("GET", "/v1/schedules/hourly").status == 200)
            until(lambda: _seen_of(seen, send.at(LATER).schedule("you").wait().id))
    assert [each.levelname for each in caplog.records] == ["WARNING"]


def _seen_of(seen: queue.SimpleQueue[Transition], id: str) -> bool:
    try:
        while seen.get(timeout=1).intent_id != id:
            pass
    except queue.Empty:
        return False
    return True


def test_an_app_that_never_reached_its_server_can_be_stopped():
    app, _, _ = made("http://127.0.0.1:1")
    for _ in range(2):
        with app:
            pass


def test_a_server_that_does_not_answer_does_not_delay_the_start(monkeypatch, caplog):
    monkeypatch.setattr("duetime.client.remote.backend.APP_START_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        app, _, _ = made(f"http://127.0.0.1:{silent.getsockname()[1]}")
        with app:
            assert "cannot be reached: no answer in time. Calls raise" in caplog.text


def test_a_refused_token_is_reported_at_the_start(tmp_path, caplog):
    with ServerProcess(tmp_path / "data") as server:
        server.stay()
        tokens.new(tmp_path / "data", "submit", "shop")
        app, _, _ = made(server.url)
        app.rewire(server.url, token="duetime_wrong")
        with pytest.raises(errors.NoToken), app:
            raise AssertionError("it did not start")
        server.kill()
        with app:
            assert "waits for the server" in caplog.text
            server.start()
            until(lambda: f"The app is not registered at {server.url}: The token is unknown" in caplog.text)


def test_an_app_is_used_with_several_servers(tmp_path):
    app, send, _ = made("http://127.0.0.1:1")
    with ServerProcess(tmp_path / "data") as server:
        app.rewire(server.url)
        with app:
            assert send.at(LATER).schedule("me").wait().status().wait() is Status.SCHEDULED
        app.rewire(server.url, token="duetime_unneeded")
        with app:
            assert app.overview().wait().counts["SCHEDULED"] == 1


@asynchronous
async def test_one_refused_intent_of_many_is_raised_as_on_a_folder(server):
    app, send, _ = made(server.url)
    async with app:
        with pytest.raises(errors.DuetimeError) as here:
            async with (embedded := App(":memory:")):

                @embedded.task(name="t")
                def t(number: int) -> None: ...

                await t.options(after=["no-such"]).schedule_many([(1,)])
        with pytest.raises(type(here.value)):
            await send.options(after=["no-such"]).schedule_many([("a",), ("b",)])


@asynchronous
async def test_waiting_ends_when_the_server_stays_away(tmp_path, monkeypatch):
    monkeypatch.setattr("duetime.client.remote.waiter.CLIENT_RECONNECT_S", 0.3)
    with ServerProcess(tmp_path / "data") as server:
        app, send, _ = made(server.url)
        async with app:
            handles = await send.at(LATER).schedule_many([(str(n),) for n in range(OWN_STREAMS_MAX + 5)])
            waits = [asyncio.ensure_future(handle.result()) for handle in handles]
            for _ in range(20):
                await handles[0].status()
            server.kill()
            for wait in waits:
                with pytest.raises(errors.Unreachable):
                    await asyncio.wait_for(wait, 60)
            with pytest.raises(errors.Unreachable):
                await handles[0].status()
