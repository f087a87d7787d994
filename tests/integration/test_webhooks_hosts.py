"""Hosts apart from each other, breakers, TLS, signatures, refused addresses, aborts and the end."""

from __future__ import annotations

import asyncio
import base64
import gc
import logging
import os
import socket
import ssl
from contextlib import contextmanager

import pytest
import trustme
from standardwebhooks import Webhook, WebhookVerificationError

from duetime.channels.webhook.calls import CallPlan
from duetime.channels.webhook.channel import WebhookChannel, WebhookOptions
from duetime.channels.webhook.host import Host
from duetime.clock import SystemClock
from duetime.errors import BadConfig
from duetime.limits import CALL_PLANS_KEPT, HOSTS_KEPT
from duetime.protocol.effect import Abort, Deliver
from duetime.protocol.outcome import Done, Failed, Outcome, Rejected, Snoozed
from duetime.protocol.terms import Callback
from tests.integration.sending import sending
from tests.receiver import hang, http, receiving

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def test_a_slow_host_does_not_slow_down_other_hosts():
    async def main():
        async with (
            receiving(hang) as slow,
            receiving(http()) as quick,
            sending(connections_per_host_max=3) as channel,
        ):
            channel.deliver(Callback(slow.url), *(f"slow{n}" for n in range(20)))
            await slow.got(3)
            channel.deliver(Callback(quick.url), *(f"quick{n}" for n in range(20)))
            await channel.until(lambda: all((f"quick{n}", 1) in channel.outcomes for n in range(20)))
            assert all(channel.outcomes[f"quick{n}", 1] == Done() for n in range(20))
            assert slow.connections == 3 and quick.connections <= 3
            assert all(type(each) in (Done, Snoozed) for each in channel.outcomes.values())

    asyncio.run(main())


def test_calls_to_one_host_start_in_order():
    async def main():
        async with receiving(http()) as receiver, sending(connections_per_host_max=1) as channel:
            channel.deliver(Callback(receiver.url), *(f"i{n:03}" for n in range(100)))
            await channel.answered(100)
            assert channel.order == sorted(channel.order)
            assert receiver.connections == 1

    asyncio.run(main())


def alive(kind: type) -> int:
    gc.collect()
    return sum(isinstance(each, kind) for each in gc.get_objects())


def test_many_hosts_are_not_remembered_for_ever():
    async def main():
        async with sending() as channel:
            for n in range(3_000):
                channel.deliver(Callback(f"http://127.0.0.1:{n + 1}/", "G T"), f"bad{n}")
            assert not alive(Host)
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
                for n in range(30):
                    hosts = [f"http://127.0.{n}.{m}:{port}/" for m in range(1, 101)]
                    for url in hosts:
                        channel.deliver(Callback(url), url)
                    await channel.answered(3_000 + 100 * (n + 1))
            assert alive(Host) <= HOSTS_KEPT and alive(CallPlan) <= CALL_PLANS_KEPT

    asyncio.run(main())


def server_tls(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


@contextmanager
def quiet():
    """A handshake that the other side breaks off is no news to the receiver's loop."""
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    yield


@pytest.mark.parametrize(("name", "trusted", "kind"), [
    ("127.0.0.1", True, None), ("127.0.0.1", False, "tls"), ("other.example", True, "tls"),
])  # fmt: skip
def test_certificates_are_checked(name, trusted, kind):
    async def main():
        authority = trustme.CA()
        client = ssl.create_default_context()
        if trusted:
            authority.configure_trust(client)
        async with receiving(http(), server_tls(authority, name)) as receiver, sending(tls=client) as channel:
            with quiet():
                outcome = await channel.send(Callback(receiver.url.replace("http:", "https:")))
            if kind is None:
                assert outcome == Done()
            else:
                assert isinstance(outcome, Failed) and outcome.kind == kind
                assert not receiver.requests

    asyncio.run(main())


def test_tls_where_there_is_none():
    async def main():
        async def talk(reader, writer):
            writer.write(b"hello, this is not TLS\r\n")
            await reader.read()
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with sending() as channel:
            outcome = await channel.send(Callback(f"https://127.0.0.1:{port}/"))
            assert isinstance(outcome, Failed) and outcome.kind == "tls"
        server.close()

    asyncio.run(main())


def test_signatures_are_those_of_standard_webhooks():
    async def main():
        async with receiving(http()) as receiver, sending(secret=SECRET) as channel:
            await channel.send(Callback(receiver.url), "one")
            await channel.send(Callback(receiver.url), "one", number=2)
            await channel.send(Callback(receiver.url, "GET"), "get")
            channel.deliver(Callback(receiver.url, headers={"Webhook-Id": "forged"}, batch=True), "a", "b")
            await channel.answered(5)
            judge = Webhook(SECRET)
            for request in receiver.requests:
                judge.verify(request.body, request.headers, json_parse=False)
            one, again, get, batch = receiver.requests
            assert one.headers["webhook-id"] == again.headers["webhook-id"] == "one"
            assert get.body == b"" and batch.headers["webhook-id"].startswith("batch_")
            with pytest.raises(WebhookVerificationError):
                judge.verify(one.body + b" ", one.headers)
            with pytest.raises(WebhookVerificationError):
                Webhook(b"another").verify(one.body, one.headers)

    asyncio.run(main())


@pytest.mark.parametrize("secret", ["secret", "whsec_", "whsec_!!", "whsec_AAAA"])
def test_a_bad_secret_is_reported_before_anything_starts(secret):
    with pytest.raises(BadConfig, match="webhook secret"):
        WebhookChannel(WebhookOptions(secret=secret), SystemClock())


@pytest.mark.parametrize("host", [
    "169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "2852039166", "0xa9fea9fe", "rebound.example",
])  # fmt: skip
def test_addresses_that_are_refused(host, monkeypatch):
    look_up = socket.getaddrinfo

    def rebound(name, *rest):
        return look_up("169.254.169.254" if name == "rebound.example" else name, *rest)

    monkeypatch.setattr(socket, "getaddrinfo", rebound)

    async def main():
        async with sending(refuse_link_local=True) as channel:
            outcome = await channel.send(Callback(f"http://{host}:80/latest/meta-data/"))
            assert isinstance(outcome, Rejected) and outcome.kind == "address"

    asyncio.run(main())


def test_the_guard_lets_the_others_pass():
    async def main():
        async with receiving(http()) as receiver, sending(refuse_link_local=True) as channel:
            assert await channel.send(Callback(f"http://localhost:{receiver.port}/")) == Done()
            assert await channel.send(Callback(receiver.url), "literal") == Done()

    asyncio.run(main())


def test_an_aborted_call_is_cut_off_and_its_place_is_taken_by_the_next():
    async def main():
        async with receiving(hang) as receiver, sending(connections_per_host_max=1) as channel:
            channel.deliver(Callback(receiver.url), "hangs", "waits", "next")
            await receiver.got(1)
            channel.channel.abort(Abort("waits", 1, ""))
            channel.channel.abort(Abort("stranger", 1, ""))
            receiver.answer = http()
            channel.channel.abort(Abort("hangs", 1, ""))
            await receiver.until(lambda: receiver.closed == 1)
            assert await channel.outcome("next") == Done()
            assert list(channel.outcomes) == [("next", 1)] and channel.channel.running() == 0
            assert [each.headers["x-duetime-intent-id"] for each in receiver.requests] == ["hangs", "next"]

    asyncio.run(main())


def test_closing_stops_everything_and_says_nothing():
    async def main():
        async with receiving(hang) as receiver:
            async with sending(connections_per_host_max=2) as channel:
                channel.deliver(Callback(receiver.url), *(f"i{n}" for n in range(10)))
                channel.deliver(Callback(receiver.url, batch=True), "batched")
                await receiver.got(2)
            assert not channel.outcomes
            await receiver.until(lambda: receiver.closed == 2)
            channel.deliver(Callback(receiver.url), "after")
            assert channel.channel.running() == 0
        never_opened = WebhookChannel(WebhookOptions(), SystemClock())
        await never_opened.close()

    asyncio.run(main())


class Tracer:
    """Begins spans that say how they ended."""

    def __init__(self, ended: list[tuple[str, str]]) -> None:
        self._ended = ended
        self.id = ""

    def __call__(self, delivery: Deliver) -> Tracer:
        span = Tracer(self._ended)
        span.id = delivery.id
        return span

    @property
    def traceparent(self) -> str:
        return f"00-{self.id}"

    def end(self, outcome: Outcome) -> None:
        self._ended.append((self.id, type(outcome).__name__))


def test_tracing_and_counting():
    calls: list[tuple[object, ...]] = []
    spans: list[tuple[str, str]] = []

    def on_call(host, tier, seconds, kind):
        assert 0 <= seconds < 10
        calls.append((host, tier, kind))

    async def main():
        tracer = Tracer(spans)
        async with receiving(http()) as receiver, sending(tracer=tracer, on_call=on_call) as channel:
            origin = receiver.url.removesuffix("/hook")
            await channel.send(Callback(receiver.url), "a", traceparent="00-old")
            receiver.answer = http(404)
            await channel.send(Callback(receiver.url, batch=True), "b")
            receiver.answer = hang
            await channel.send(Callback(receiver.url), "c", timeout_ms=100)
            assert calls == [(origin, 0, "done"), (origin, 0, "http"), (origin, 0, "timeout")]
            assert spans == [("a", "Done"), ("b", "Rejected"), ("c", "Failed")]
            assert [each.headers["traceparent"] for each in receiver.requests] == ["00-a", "00-b", "00-c"]

    asyncio.run(main())


@pytest.mark.parametrize("batch", [False, True])
def test_a_bug_has_an_outcome_and_is_logged(batch, caplog):
    def tracer(delivery):
        if delivery.id == "bad":
            raise RuntimeError("oh")
        return Tracer([])(delivery)

    async def main():
        async with receiving(http()) as receiver, sending(tracer=tracer) as channel:
            with caplog.at_level(logging.ERROR, "duetime"):
                outcome = await channel.send(Callback(receiver.url, batch=batch), "bad")
            assert outcome == Failed("bug", "RuntimeError('oh')")
            assert "bad" in caplog.text and "oh" in caplog.text
            assert await channel.send(Callback(receiver.url, batch=batch), "good") == Done()

    asyncio.run(main())


def test_many_at_once_and_each_has_its_outcome():
    async def main():
        async def fickle(request, writer):
            number = int(request.headers["x-duetime-intent-id"])
            if number % 7 == 0:
                raise EOFError
            await http(200 if number % 3 else 404, os.urandom(3))(request, writer)

        async with receiving(fickle) as receiver, sending(connections_per_host_max=20) as channel:
            channel.deliver(Callback(receiver.url), *(str(n) for n in range(1_000)))
            await channel.answered(1_000)
            assert channel.channel.running() == 0
            for n in range(1_000):
                expected = Failed if n % 7 == 0 else Done if n % 3 else Rejected
                assert type(channel.outcomes[str(n), 1]) is expected
            assert len(receiver.requests) == 1_000

    asyncio.run(main())
