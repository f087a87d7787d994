"""Webhooks over real sockets: what is sent, what each answer means, and a receiver that misbehaves."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from duetime.protocol.outcome import Done, Expired, Failed, Rejected
from duetime.protocol.terms import Callback
from duetime.testing.time import ManualClock
from tests.integration.sending import sending
from tests.receiver import Request, hang, hang_up, http, receiving, says


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def test_the_request_of_a_webhook():
    async def main():
        async with receiving(http()) as receiver, sending() as channel:
            trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            callback = Callback(receiver.url + "?a=b", headers={"X-Mine": "yes"})
            outcome = await channel.send(
                callback, "a.b:1", number=3, attempt=2, tags={"k": 'v%"'}, traceparent=trace
            )
            assert outcome == Done()
            (request,) = receiver.requests
            assert (request.method, request.path) == ("POST", "/hook?a=b")
            assert request.json == {
                "intentId": "a.b:1",
                "precisionTier": "ULTRA",
                "delivery": 3,
                "attempt": 2,
                "executeAt": "2030-01-01T00:00:00.042Z",
                "lateMs": 7,
                "payload": {"n": 1},
                "tags": {"k": 'v%"'},
            }
            headers = request.headers
            assert headers["x-duetime-intent-id"] == "a.b:1" and headers["x-duetime-delivery"] == "3"
            assert headers["x-mine"] == "yes" and headers["traceparent"] == trace
            assert headers["content-type"] == "application/json"
            assert headers["user-agent"].startswith("Duetime/")
            assert "webhook-signature" not in headers

    run(main)


def test_method_body_and_content_type_of_the_user_are_used():
    async def main():
        async with receiving(http()) as receiver, sending() as channel:
            mine = Callback(receiver.url, "put", {"content-TYPE": "text/plain"}, b"x" * 5_000)
            assert await channel.send(mine, "put") == Done()
            assert await channel.send(Callback(receiver.url, "GET"), "get") == Done()
            assert await channel.send(Callback(receiver.url, "GET", body=b"q"), "get-body") == Done()
            assert await channel.send(Callback(receiver.url, "DELETE"), "delete") == Done()
            assert await channel.send(Callback(receiver.url), "empty", payload=b"") == Done()
            put, get, get_body, delete, empty = receiver.requests
            assert put.method == "PUT" and put.body == b"x" * 5_000
            assert put.headers["content-type"] == "text/plain"
            assert get.method == "GET" and get.body == b"" and "content-type" not in get.headers
            assert get_body.body == b"q"
            assert delete.json["intentId"] == "delete" and empty.json["payload"] is None

    run(main)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (http(200, b'{"a": 1}'), Done(b'{"a": 1}')),
        (http(201, b"not json"), Done()),
        (http(200, b'{"a": 1} and more'), Done()),
        (http(200, b"[" * 5_000 + b"]" * 5_000), Done()),
        (http(200, b'"\xff"'), Done()),
        (http(200, b""), Done()),
        (says(b"HTTP/1.1 204 No Content\r\n\r\n"), Done()),
        (says(b"HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\n7"), Done(b"7")),
        (http(200, b'"' + b"x" * 1_200 + b'"'), Done()),  # larger than the result limit
        (says(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"), Done(b"{}")),
        (says(b"HTTP/1.1 103 Early\r\nlink: </a>\r\n\r\n", b"HTTP/1.1 204 None\r\n\r\n"), Done()),
        (http(302, b"", "location: http://127.0.0.1:1/"), Rejected("http", "HTTP 302 Found", 302)),
        (http(404, b" no\n\tsuch hook"), Rejected("http", "HTTP 404 Not Found: no such hook", 404)),
        (http(410), Rejected("http", "HTTP 410 Gone", 410)),
        (http(500, b"\xff"), Failed("http", "HTTP 500 Internal Server Error: \ufffd", 500)),
        (http(503), Failed("http", "HTTP 503 Service Unavailable", 503)),
        (http(408), Failed("http", "HTTP 408 Request Timeout", 408)),
        (http(425), Failed("http", "HTTP 425 Too Early", 425)),
        (http(599), Failed("http", "HTTP 599", 599)),
        (http(503, b"", "retry-after: x"), Failed("http", "HTTP 503 Service Unavailable", 503)),
    ],
)  # fmt: skip
def test_the_outcome_of_each_response(answer, outcome):
    async def main():
        async with receiving(answer) as receiver, sending(result_bytes_max=1_000) as channel:
            assert await channel.send(Callback(receiver.url)) == outcome
            assert len(receiver.requests) == 1

    run(main)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("text", "wait_ms"),
    [
        ("120", 120_000),
        ("Tue, 01 Jan 2030 00:01:00 GMT", 60_000),
        ("Mon, 31 Dec 2029 00:00:00 GMT", None),
        ("99999999999999999999", 86_400_000),
        ("0", None),
        ("-5", None),
    ],
)
def test_retry_after_is_honoured(status, text, wait_ms):
    async def main():
        clock = ManualClock()
        async with (
            receiving(http(status, b"", f"Retry-After: {text}")) as receiver,
            sending(clock) as channel,
        ):
            outcome = await channel.send(Callback(receiver.url))
            assert isinstance(outcome, Failed) and outcome.http_status == status
            assert outcome.not_before_ms == (clock.now_ms() + wait_ms if wait_ms is not None else 0)

    run(main)


async def slow_headers(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-le")
    await hang(request, writer)


async def slow_body(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{")
    await hang(request, writer)


async def reset(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncont")
    await writer.drain()
    writer.transport.abort()
    raise EOFError


async def cut_body(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{}")
    await writer.drain()
    raise EOFError


async def endless_body(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"x" * 65_536)
        await writer.drain()


async def endless_chunks(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 404 Nope\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
        await writer.drain()


async def endless_promises(request: Request, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"HTTP/1.1 102 Processing\r\n\r\n")
        await writer.drain()
        await asyncio.to_thread(lambda: None)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (hang, "timeout"),
        (slow_headers, "timeout"),
        (endless_promises, "timeout"),
        (reset, "connect"),
        (hang_up, "connect"),
        (says(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), "protocol"),
        (says(b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n"), "protocol"),
        (says(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"), "protocol"),
        (says(b"HTTP/1.1 200 OK\r\nx: " + b"x" * 100_000 + b"\r\n\r\n"), "protocol"),
        (says(b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"), "protocol"),
    ],
)
def test_a_receiver_that_gives_no_answer(answer, kind):
    async def main():
        async with receiving(answer) as receiver, sending() as channel:
            outcome = await channel.send(Callback(receiver.url), timeout_ms=400)
            assert isinstance(outcome, Failed) and outcome.kind == kind, outcome
            assert len(receiver.requests) == 1
            await receiver.until(lambda: receiver.closed == 1)  # its connection is not used again

    run(main)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(slow_body, Done()), (cut_body, Done()), (endless_body, Done()), (endless_chunks, 404)],
)
def test_a_known_status_decides_even_if_the_body_fails(answer, outcome):
    async def main():
        async with receiving(answer) as receiver, sending(response_bytes_max=200_000) as channel:
            got = await channel.send(Callback(receiver.url), timeout_ms=400)
            if outcome == 404:
                assert isinstance(got, Rejected) and got.http_status == 404 and len(got.message) < 300
            else:
                assert got == outcome
            await receiver.until(lambda: receiver.closed == 1)
            receiver.answer = http()
            assert await channel.send(Callback(receiver.url), "next") == Done()
            assert receiver.requests[-1].connection == 2

    run(main)


def test_a_body_larger_than_the_limit_is_not_read_to_its_end():
    async def main():
        async with receiving(http(200, b'"' + b"x" * 50_000_000 + b'"')) as receiver, sending() as channel:
            assert await channel.send(Callback(receiver.url)) == Done()
            await receiver.until(lambda: receiver.closed == 1)

    run(main)


def test_a_connection_is_used_again():
    async def main():
        async with receiving(http(200, b"{}")) as receiver, sending() as channel:
            for number in range(5):
                await channel.send(Callback(receiver.url), f"i{number}")
            assert receiver.connections == 1

    run(main)


@pytest.mark.parametrize("method", ["PUT", "GET", "DELETE"])
def test_a_request_is_never_sent_twice_behind_our_back(method):
    async def main():
        async with receiving(http()) as receiver, sending() as channel:
            assert await channel.send(Callback(receiver.url, method)) == Done()
            receiver.answer = hang_up
            outcome = await channel.send(Callback(receiver.url, method), "second")
            assert isinstance(outcome, Failed) and outcome.kind == "connect"
            assert len(receiver.requests) == 2

    run(main)


def test_a_refused_connection_is_a_failure():
    async def main():
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        async with sending() as channel:
            refused = await channel.send(Callback(f"http://127.0.0.1:{port}/"))
            assert isinstance(refused, Failed) and refused.kind == "connect"
            unknown = await channel.send(Callback("http://no-such-name.invalid/"), "dns")
            assert isinstance(unknown, Failed) and unknown.kind == "dns"
            too_long = await channel.send(Callback(f"http://{'a' * 70}.example/"), "label")
            assert isinstance(too_long, Failed | Rejected) and too_long.kind in ("dns", "address")

    run(main)


def test_a_deadline_that_passed_while_it_waited_is_not_sent():
    async def main():
        clock = ManualClock()
        gate = asyncio.Event()

        async def wait(request, writer):
            await gate.wait()
            await http()(request, writer)

        async with receiving(wait) as receiver, sending(clock, connections_per_host_max=1) as channel:
            callback = Callback(receiver.url)
            channel.deliver(callback, "first")
            channel.deliver(callback, "late", deadline_ms=clock.now_ms() + 1_000)
            channel.deliver(callback, "in-time", deadline_ms=clock.now_ms() + 1_001)
            await receiver.got(1)
            clock.set_ms(clock.now_ms() + 1_000)
            gate.set()
            await channel.answered(3)
            assert isinstance(channel.outcomes["late", 1], Expired)
            assert channel.outcomes["in-time", 1] == Done()
            sent = [request.headers["x-duetime-intent-id"] for request in receiver.requests]
            assert sent == ["first", "in-time"]

    run(main)


@pytest.mark.parametrize(
    ("callback", "kind"),
    [
        (Callback("ftp://example.com/"), "address"),
        (Callback("http:///path"), "address"),
        (Callback("http://user:secret@example.com/"), "address"),
        (Callback("http://example.com:99999/"), "address"),
        (Callback("http://[::1"), "address"),
        (Callback("http://a\r\nb/"), "address"),
        (Callback("http://example.com/", "PO ST"), "protocol"),
        (Callback("http://example.com/", "GET\r\nX: y"), "protocol"),
        (Callback("http://example.com/", headers={"X": "a\r\nInjected: yes"}), "protocol"),
        (Callback("http://example.com/", headers={"X\n": "a"}), "protocol"),
        (Callback("http://example.com/", headers={"": "a"}), "protocol"),
        (Callback("http://example.com/", headers={"Content-Length": "3"}), "protocol"),
        (Callback("http://example.com/", headers={"Transfer-Encoding": "chunked"}), "protocol"),
        (Callback("http://example.com/", "GET", batch=True), "protocol"),
        (Callback("http://example.com/", body=b"{", batch=True), "protocol"),
    ],
)
def test_a_callback_that_cannot_be_sent_is_rejected_with_a_reason(callback, kind):
    async def main():
        async with sending() as channel:
            outcome = await channel.send(callback)
            assert isinstance(outcome, Rejected) and outcome.kind == kind and outcome.message

    run(main)


def test_a_bad_traceparent_is_left_out():
    async def main():
        async with receiving(http()) as receiver, sending() as channel:
            await channel.send(Callback(receiver.url), traceparent="a\r\nInjected: yes")
            assert "traceparent" not in receiver.requests[0].headers
            assert "injected" not in receiver.requests[0].headers

    run(main)
