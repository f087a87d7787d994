"""Messages that never become whole: strangers cannot fill the memory with them, and keep nobody waiting."""

from __future__ import annotations

import asyncio
import select
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from duetime.api.access import tokens
from duetime.v1 import intents_pb2
from duetime.v1.stub import DuetimeStub
from tests.grpc.subscriber import calling, channel_to, metadata
from tests.grpc.test_port import NEW
from tests.http.server import ServerProcess

CONNECTIONS, STREAMS = 30, 4
MESSAGE_BYTES = 8 * 1024 * 1024 - 64
MORE_BYTES_MAX = 150 * 1024 * 1024
# How long nothing moves before it is taken for the end.
QUIET_S = 1.0
DATA, HEADERS, RESET, SETTINGS, GO_AWAY, WINDOW = 0, 1, 3, 4, 7, 8
_CHUNK = b"x" * 16_384


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body


def head(path: str, token: str | None) -> bytes:
    """Headers in HPACK, none of them indexed."""
    fields = [
        (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"),
        ("content-type", "application/grpc"), ("te", "trailers"),
        *([] if token is None else [("x-duetime-token", token)]),
    ]  # fmt: skip
    return b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in fields
    )


class Stranger:
    """A connection with several calls, whose messages it begins and does not end."""

    def __init__(self, address: str, path: str, token: str | None) -> None:
        place = urlsplit(address)
        self.socket = socket.create_connection((place.hostname, place.port), timeout=30)
        self.socket.setblocking(False)
        self._in = self._out = b""
        self._out += b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b"")
        self._window = self._initial = 65_535
        self._windows: dict[int, int] = {}
        self._left: dict[int, int] = {}
        for number in range(STREAMS):
            stream = 2 * number + 1
            self._out += frame(HEADERS, 4, stream, head(path, token))
            self._out += frame(DATA, 0, stream, b"\0" + struct.pack(">I", MESSAGE_BYTES))
            self._windows[stream] = self._initial - 5
            self._window -= 5
            self._left[stream] = MESSAGE_BYTES - 1

    def move(self) -> bool:
        """Send and receive what can be; whether something moved."""
        try:
            return self._receive() or self._send()
        except BlockingIOError:
            return False
        except OSError:
            self._left.clear()
            return False

    def _send(self) -> bool:
        if len(self._out) < len(_CHUNK):
            for stream, left in self._left.items():
                size = min(left, self._window, self._windows[stream], len(_CHUNK))
                if size > 0:
                    self._out += frame(DATA, 0, stream, _CHUNK[:size])
                    self._left[stream] -= size
                    self._windows[stream] -= size
                    self._window -= size
        sent = self.socket.send(self._out) if self._out else 0
        self._out = self._out[sent:]
        return sent > 0

    def _receive(self) -> bool:
        try:
            got = self.socket.recv(65_536)
        except BlockingIOError:
            return False
        if not got:
            self._left.clear()
            return False
        self._in += got
        while len(self._in) >= 9:
            size = int.from_bytes(self._in[:3], "big")
            if len(self._in) < 9 + size:
                break
            kind, flags, stream = struct.unpack(">BBI", self._in[3:9])
            self._hear(kind, flags, stream, self._in[9 : 9 + size])
            self._in = self._in[9 + size :]
        return True

    def _hear(self, kind: int, flags: int, stream: int, body: bytes) -> None:
        if kind == SETTINGS and not flags & 1:
            for at in range(0, len(body), 6):
                name, value = struct.unpack(">HI", body[at : at + 6])
                if name == 4:
                    for each in self._windows:
                        self._windows[each] += value - self._initial
                    self._initial = value
            self._out += frame(SETTINGS, 1, 0, b"")
        elif kind == WINDOW:
            more = int.from_bytes(body, "big")
            if stream:
                self._windows[stream] = self._windows.get(stream, 0) + more
            else:
                self._window += more
        elif kind == RESET or (kind == HEADERS and flags & 1):
            self._left.pop(stream, None)
        elif kind == GO_AWAY:
            self._left.clear()


@contextmanager
def crowd(address: str, path: str, token: str | None) -> Iterator[None]:
    """Strangers that have sent all that they may."""
    with ExitStack() as stack:
        found = [Stranger(address, path, token) for _ in range(CONNECTIONS)]
        for each in found:
            stack.enter_context(each.socket)
        while sum(each.move() for each in found) or _readable(found):
            pass
        yield


def _readable(strangers: list[Stranger]) -> bool:
    ready, _, _ = select.select([each.socket for each in strangers], [], [], QUIET_S)
    return bool(ready) and sum(each.move() for each in strangers) > 0


async def healthy(address: str) -> None:
    """Health is told to everybody, and soon."""
    async with channel_to(address) as channel:
        asked = health_pb2.HealthCheckRequest()
        checked = await health_pb2_grpc.HealthStub(channel).Check(asked, timeout=5)
        assert checked.status == health_pb2.HealthCheckResponse.SERVING
        assert (await DuetimeStub(channel).Health(intents_pb2.HealthRequest(), timeout=5)).status


@pytest.mark.parametrize(
    ("path", "who"),
    [
        ("/duetime.v1.Duetime/CreateBatch", None),
        ("/duetime.v1.Duetime/WatchIntents", None),
        ("/duetime.v1.Duetime/Deliveries", None),
        ("/duetime.v1.Duetime/Health", None),
        ("/grpc.health.v1.Health/Check", None),
        ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", None),
        ("/duetime.v1.Duetime/CreateBatch", "submit"),
        ("/duetime.v1.Duetime/WatchIntents", "read"),
        ("/duetime.v1.Duetime/Deliveries", "worker"),
    ],
)
def test_unfinished_messages_do_not_fill_the_memory(tmp_path, path, who):
    folder = tmp_path / "data"
    admin = tokens.new(folder, "admin", "admin")
    token = None if who is None else tokens.new(folder, who, who)

    async def works(address: str) -> None:
        async with calling(address) as stub:
            made = await stub.Create(NEW, metadata=metadata(admin), timeout=30, wait_for_ready=True)
            assert made.intent.intent_id
            await healthy(address)

    with ServerProcess(folder) as server:
        asyncio.run(works(server.grpc))
        before = server.memory_bytes()
        with crowd(server.grpc, path, token):
            assert server.memory_bytes() - before < MORE_BYTES_MAX
            asyncio.run(works(server.grpc))


def test_many_callers_with_one_token_all_get_their_turn(server: ServerProcess):
    async def main() -> None:
        async with calling(server.grpc) as stub:
            made = await asyncio.gather(*(stub.Create(NEW) for _ in range(200)))
            assert len({each.intent.intent_id for each in made}) == 200

    asyncio.run(main())


def test_calls_without_a_message_take_no_place_of_those_with_one(tmp_path):
    """Not even from others with the same token, on either port."""
    folder = tmp_path / "data"
    token = tokens.new(folder, "submit", "submit")
    with (
        ServerProcess(folder, server__requests_max=20) as server,
        crowd(server.grpc, "/duetime.v1.Duetime/CreateBatch", token),
    ):
        new = {"delayMs": 3_600_000, "stream": {"name": "nobody"}}
        made = server.ask("POST", "/v1/intents", new, {"authorization": f"Bearer {token}"})
        assert made.status == 201, made.body


def test_a_call_without_a_message_is_refused(server: ServerProcess):
    async def main() -> None:
        place = server.grpc.partition("://")[2]
        async with grpc.aio.insecure_channel(place) as channel:
            call: Any = channel.stream_unary("/duetime.v1.Duetime/Get")()
            await call.done_writing()
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await call
            assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "no message" in (error.value.details() or "")

    asyncio.run(main())
