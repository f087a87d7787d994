"""Batches of webhooks: who goes together, when they go, and what the answer means for each."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from duetime import limits
from duetime.protocol.effect import Abort
from duetime.protocol.outcome import Done, Expired, Failed, Rejected
from duetime.protocol.terms import Callback, Tier
from duetime.testing.time import ManualClock
from tests.integration.sending import delivery, sending
from tests.receiver import Request, hang, http, receiving


def results(*entries: object) -> bytes:
    return msgspec.json.encode({"results": list(entries)})


def said(id: str, status: object, error: object = None) -> dict[str, object]:
    return {"intentId": id, "status": status, "error": error}


def ids_of(request: Request) -> list[str]:
    return [each["intentId"] for each in request.json]


def test_a_batch_is_an_array_of_the_bodies():
    async def main():
        async with receiving(http()) as receiver, sending() as channel:
            callback = Callback(receiver.url, headers={"X-Mine": "1"}, batch=True)
            channel.deliver(callback, "a", "b", tags={"t": "1"})
            await channel.answered(2)
            (request,) = receiver.requests
            assert request.headers["x-duetime-batch-size"] == "2" and request.headers["x-mine"] == "1"
            assert "x-duetime-intent-id" not in request.headers
            assert ids_of(request) == ["a", "b"]
            assert request.json[0]["payload"] == {"n": 1} and request.json[0]["tags"] == {"t": "1"}
            assert channel.outcomes == {("a", 1): Done(), ("b", 1): Done()}
            assert channel.turns == 1

    asyncio.run(main())


def test_one_is_an_array_too_and_a_body_of_its_own_is_an_item():
    async def main():
        async with receiving(http()) as receiver, sending() as channel:
            assert await channel.send(Callback(receiver.url, body=b'{"mine": 1}', batch=True)) == Done()
            assert receiver.requests[0].json == [{"mine": 1}]
            assert receiver.requests[0].headers["x-duetime-batch-size"] == "1"

    asyncio.run(main())


def test_a_full_batch_is_sent_without_waiting_for_the_linger():
    async def main():
        async with receiving(http()) as receiver, sending() as channel:
            callback = Callback(receiver.url, batch=True)
            count = 2 * limits.CALLBACK_BATCH_MAX + 10
            channel.deliver(callback, *(f"i{n}" for n in range(count)), tier=Tier.ECONOMY)
            await receiver.got(2)
            assert len(receiver.requests) == 2, "the rest still lingers"
            await channel.answered(count)
            sizes = sorted(int(request.headers["x-duetime-batch-size"]) for request in receiver.requests)
            assert sizes == [10, 200, 200]
            assert sorted(id for request in receiver.requests for id in ids_of(request)) == sorted(
                f"i{n}" for n in range(count)
            )

    asyncio.run(main())


def test_a_batch_has_only_items_with_equal_terms():
    async def main():
        async with receiving(http()) as receiver, sending() as channel:
            url = receiver.url
            channel.deliver(Callback(url, batch=True), "a1", "a2")
            channel.deliver(Callback(url, batch=True), "a3", timeout_ms=9_000)
            channel.deliver(Callback(url + "?other", batch=True), "url")
            channel.deliver(Callback(url, "PUT", batch=True), "method")
            channel.deliver(Callback(url, headers={"X": "1"}, batch=True), "headers")
            channel.deliver(Callback(url, batch=True), "tier", tier=Tier.FAST)
            channel.deliver(Callback(url), "single")
            await channel.answered(8)
            bodies = [request.json for request in receiver.requests]
            groups = sorted(
                [each["intentId"] for each in body] if isinstance(body, list) else [body["intentId"]]
                for body in bodies
            )
            assert groups == [["a1", "a2", "a3"], ["headers"], ["method"], ["single"], ["tier"], ["url"]]

    asyncio.run(main())


def test_a_batch_is_closed_before_its_body_grows_too_large():
    async def main():
        async with receiving(http()) as receiver, sending(batch_bytes_max=10_000) as channel:
            callback = Callback(receiver.url, batch=True)
            for n in range(5):
                channel.deliver(callback, f"i{n}", payload=b'"' + b"x" * 4_000 + b'"')
            channel.deliver(callback, "huge", payload=b'"' + b"x" * 40_000 + b'"')
            await channel.answered(6)
            groups = sorted(ids_of(request) for request in receiver.requests)
            assert groups == [["huge"], ["i0", "i1"], ["i2", "i3"], ["i4"]]

    asyncio.run(main())


def test_the_answer_may_speak_of_each():
    async def main():
        answer = results(
            said("acked", "ACKED"),
            said("retry", "RETRY", "busy"),
            said("dead", "DEAD_LETTER", {"why": "no"}),
            said("expired", "EXPIRED", "too late"),
            said("failed", "FAILED", "boom"),
            said("number", 7),
            {"intentId": "silent"},
            {"intentId": 5, "status": "ACKED"},
            "nonsense",
            said("stranger", "DEAD_LETTER"),
        )
        async with receiving(http(200, answer)) as receiver, sending() as channel:
            names = ("acked", "retry", "dead", "expired", "failed", "number", "silent", "unnamed")
            channel.deliver(Callback(receiver.url, batch=True), *names)
            await channel.answered(len(names))
            outcomes = {id: outcome for (id, _), outcome in channel.outcomes.items()}
            assert outcomes["acked"] == outcomes["unnamed"] == Done()
            assert outcomes["retry"] == Failed("http", "busy", 200)
            assert outcomes["dead"] == Rejected("http", "{'why': 'no'}", 200)
            assert outcomes["expired"] == Expired("too late")
            for name in ("failed", "number", "silent"):  # a status nobody knows is a retry, never a success
                assert isinstance(outcomes[name], Failed), outcomes[name]

    asyncio.run(main())


def test_items_without_a_result_follow_the_status_of_a_bad_response():
    async def main():
        answer = http(503, results(said("a", "ACKED")), "retry-after: 60")
        clock = ManualClock()
        async with receiving(answer) as receiver, sending(clock) as channel:
            channel.deliver(Callback(receiver.url, batch=True), "a", "b")
            await channel.answered(2)
            assert channel.outcomes["a", 1] == Done()
            other = channel.outcomes["b", 1]
            assert isinstance(other, Failed) and other.http_status == 503
            assert other.not_before_ms == clock.now_ms() + 60_000

    asyncio.run(main())


@pytest.mark.parametrize(
    "body", [b"", b"ok", b"[]", b"7", b"{}", b'{"results": 7}', b'{"results": [', b'{"results": [[], null]}']
)
def test_an_answer_of_another_form_follows_the_status_at_once(body):
    async def main():
        async with receiving(http(200, body)) as receiver, sending() as channel:
            callback = Callback(receiver.url, batch=True)
            channel.deliver(callback, "a", "b")
            await channel.answered(2)
            receiver.answer = http(400, body)
            channel.deliver(callback, "c")
            await channel.answered(3)
            assert channel.outcomes["a", 1] == channel.outcomes["b", 1] == Done()
            assert isinstance(channel.outcomes["c", 1], Rejected)

    asyncio.run(main())


def test_results_that_were_cut_off_are_no_success():
    """An item may have been answered DEAD_LETTER in the part that never came."""

    async def cut(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{"results": [')
        await writer.drain()
        raise EOFError

    async def main():
        async with receiving(cut) as receiver, sending(response_bytes_max=100) as channel:
            callback = Callback(receiver.url, batch=True)
            assert isinstance(await channel.send(callback, "cut"), Failed)
            receiver.answer = http(200, results(*(said(f"i{n}", "ACKED") for n in range(100))))
            assert isinstance(await channel.send(callback, "too-long"), Failed)
            receiver.answer = http(200, b"<html>" * 100)
            assert await channel.send(callback, "no-results") == Done()

    asyncio.run(main())


def test_the_timeout_of_a_batch_is_the_smallest_of_its_items():
    async def main():
        async with receiving(hang) as receiver, sending() as channel:
            callback = Callback(receiver.url, batch=True)
            channel.deliver(callback, "patient", timeout_ms=1_000_000)
            channel.deliver(callback, "hasty", timeout_ms=200)
            await channel.answered(2)
            assert len(receiver.requests) == 1
            for outcome in channel.outcomes.values():
                assert isinstance(outcome, Failed) and outcome.kind == "timeout"

    asyncio.run(main())


def test_deadlines_and_aborts_while_it_gathers():
    async def main():
        clock = ManualClock()
        async with receiving(http()) as receiver, sending(clock) as channel:
            callback = Callback(receiver.url, batch=True)
            channel.deliver(callback, "goes", "aborted", tier=Tier.HIGH)
            channel.deliver(callback, "late", tier=Tier.HIGH, deadline_ms=clock.now_ms() + 1)
            channel.channel.abort(Abort("aborted", 1, ""))
            clock.set_ms(clock.now_ms() + 1)
            await channel.answered(2)
            assert ids_of(receiver.requests[0]) == ["goes"]
            assert isinstance(channel.outcomes["late", 1], Expired)
            assert ("aborted", 1) not in channel.outcomes

    asyncio.run(main())


def test_one_of_a_batch_under_way_is_aborted_and_the_others_are_not():
    async def main():
        gate = asyncio.Event()

        async def wait(request, writer):
            await gate.wait()
            await http()(request, writer)

        async with receiving(wait) as receiver, sending() as channel:
            callback = Callback(receiver.url, batch=True)
            channel.deliver(callback, "a", "b")
            await receiver.got(1)
            channel.channel.abort(Abort("a", 1, ""))
            assert channel.channel.running() == 1
            gate.set()
            await channel.answered(1)
            assert channel.outcomes == {("b", 1): Done()}

    asyncio.run(main())


def test_the_same_delivery_twice_has_one_outcome():
    async def main():
        async with receiving(http()) as receiver, sending() as channel:
            twin = delivery(Callback(receiver.url))
            channel.channel.deliver(twin)
            channel.channel.deliver(twin)
            channel.channel.flush()
            await channel.answered(1)
            assert channel.channel.running() == 0 and len(receiver.requests) == 1

    asyncio.run(main())
