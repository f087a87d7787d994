"""What a client does when the way to the server is bad: it repeats what is safe, and nothing twice."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from duetime import App, errors
from duetime.client.http.client import Client
from tests.http.server import ServerProcess
from tests.integration.asynchronous import asynchronous
from tests.integration.proxy import Proxy
from tests.receiver import Hooks, Say

HOUR_MS = 3_600_000
NOBODY = {"name": "nobody"}


@asynchronous
async def test_a_write_with_a_lost_response_is_done_once(proxy, server, fresh):
    tag = fresh()
    async with Client(proxy.url) as client:
        proxy.lose_answers(2)
        made = await client.create(delay_ms=HOUR_MS, stream=NOBODY, tags={"test": tag})
        assert made.status == "SCHEDULED"
        found = [each.intent_id async for each in client.every(tags={"test": tag})]
        assert found == [made.intent_id], "three requests, one intent"

        proxy.lose_answers(1)
        batch = await client.create_many([{"delay_ms": HOUR_MS, "stream": NOBODY, "tags": {"test": tag}}] * 3)
        assert (batch.created, batch.failed) == (3, 0)
        assert len([each async for each in client.every(tags={"test": tag})]) == 4

        proxy.lose_answers(1)
        assert (await client.cancel(made.intent_id)).status == "CANCELED", "and not: it has ended already"


@asynchronous
async def test_a_connection_that_cannot_be_made_is_tried_again(proxy):
    async with Client(proxy.url) as client:
        proxy.refuse(3)
        assert (await client.create(delay_ms=HOUR_MS, stream=NOBODY)).status == "SCHEDULED"
        assert proxy.connections == 4


@asynchronous
async def test_retries_end(proxy):
    async with Client(proxy.url, tries=2) as client:
        proxy.refuse(10)
        with pytest.raises(errors.Unreachable) as caught:
            await client.create(delay_ms=HOUR_MS, stream=NOBODY)
        assert proxy.connections == 2
        assert caught.value.hint == f"Is `duetime serve` running at {proxy.url}?" and caught.value.retryable


@asynchronous
async def test_a_server_that_does_not_answer_is_unreachable(hooks, fresh):
    held = fresh()
    hooks.hold(f"{held}/v1/intents/x")
    async with Client(hooks.url(held), tries=1, timeout_s=0.2) as client:
        with pytest.raises(errors.Unreachable, match="no answer in time"):
            await client.get("x")


def busy(kind: type[errors.DuetimeError], **headers: str) -> Say:
    from duetime.api.http.problems import encode

    return Say(kind.status, encode(kind("not now")), headers)


SHOWN = Say(
    200,
    json.dumps(
        {"intentId": "x", "status": "DUE", "later": 1}
        | dict.fromkeys(("executeAt", "createdAt", "updatedAt"), "2030-01-01T00:00:00.000Z")
    ).encode(),
)


def requests_of(hooks: Hooks, path: str) -> list[str | None]:
    return [hooks.take(path).headers.get("x-duetime-request-id") for _ in range(hooks.count(path))]


@asynchronous
async def test_an_unavailable_answer_is_retried_and_a_write_keeps_its_request_id(hooks, fresh):
    base = fresh()
    hooks.says(f"{base}/v1/intents/x", busy(errors.NotReady), busy(errors.LogUnavailable), SHOWN)
    hooks.says(f"{base}/v1/intents/x/cancel", busy(errors.NotReady), SHOWN)
    async with Client(hooks.url(base)) as client:
        assert (await client.get("x")).status == "DUE"
        assert requests_of(hooks, f"{base}/v1/intents/x") == [None] * 3
        await client.cancel("x")
        first, second = requests_of(hooks, f"{base}/v1/intents/x/cancel")
        assert first is not None and first == second
        await client.cancel("x")
        assert requests_of(hooks, f"{base}/v1/intents/x/cancel") != [first], "another request, another id"


@asynchronous
async def test_the_server_says_when_up_to_a_bound(hooks, fresh):
    base = fresh()
    path = f"{base}/v1/intents/x"
    async with Client(hooks.url(base)) as client:
        hooks.says(path, busy(errors.Busy, **{"Retry-After": "1"}), SHOWN)
        start = time.monotonic()
        await client.get("x")
        assert time.monotonic() - start >= 1
        assert len(requests_of(hooks, path)) == 2

        hooks.says(path, busy(errors.Busy, **{"Retry-After": "60"}))
        with pytest.raises(errors.Busy):
            await client.get("x")
        hooks.says(path, busy(errors.Busy))
        with pytest.raises(errors.Busy):
            await client.get("x")
        assert len(requests_of(hooks, path)) == 2, "neither was repeated"


@pytest.mark.parametrize(
    ("say", "kind"),
    [
        (busy(errors.NoSuchIntent), errors.NoSuchIntent),
        (busy(errors.DuetimeError), errors.DuetimeError),
        (busy(errors.Closed), errors.Closed),
        (Say(502, b"<html>bad gateway</html>"), errors.Unavailable),
        (Say(302, b"", {"Location": "http://127.0.0.1:1/"}), errors.Refused),
        (Say(200, b"<html>hello</html>"), errors.Unreachable),
        (Say(200, b"{}"), errors.Unreachable),
    ],
    ids=["refused", "bug", "closed", "proxy", "redirect", "no-json", "other-json"],
)
def test_an_error_that_is_not_retryable_is_raised_at_once(hooks, fresh, say, kind):
    base = fresh()
    hooks.says(f"{base}/v1/intents/x", say)
    with Client(hooks.url(base)) as client, pytest.raises(kind):
        client.get("x").wait()
    assert len(requests_of(hooks, f"{base}/v1/intents/x")) == 1


@asynchronous
async def test_a_cancelled_call_leaves_nothing_behind(hooks, fresh):
    base = fresh()
    hooks.hold(f"{base}/v1/intents/x")
    async with Client(hooks.url(base)) as client:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.get("x"), 0.1)
        hooks.let_go(f"{base}/v1/intents/x")
        hooks.says(f"{base}/v1/intents/y", SHOWN)
        assert (await client.get("y")).status == "DUE"


def test_many_threads_may_share_a_plain_client(server):
    import threading

    failed: list[BaseException] = []
    with Client(server.url) as client:

        def work() -> None:
            try:
                for _ in range(20):
                    client.create(delay_ms=HOUR_MS, stream=NOBODY).wait()
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed


@asynchronous
async def test_a_write_is_done_once_also_when_the_server_dies_before_its_answer_arrives(tmp_path):
    """The answer is lost, the server is killed and started again, and the client asks the new one again."""
    with ServerProcess(tmp_path / "data") as server, Proxy(server.url) as proxy:
        port = server.url.rpartition(":")[2]
        app = App(proxy.url)

        @app.task(name="once", queue="nobody")
        def once() -> None: ...

        async with app, Client(proxy.url, tries=60) as client:
            await client.health()
            proxy.lose_answers(1)
            creating = asyncio.ensure_future(client.create(delay_ms=HOUR_MS, stream=NOBODY))
            await proxy.all_lost()
            server.kill()
            with ServerProcess(tmp_path / "data", "--port", port):
                made = await creating
                found = [each.intent_id async for each in client.every()]
                assert found == [made.intent_id]

                proxy.lose_answers(1)
                handle = await once.delay("1h").schedule()
                assert len([each async for each in client.every()]) == 2
                assert (await client.get(handle.id)).status == "SCHEDULED"
