"""Workers that come while the server goes."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from duetime.api.access import tokens
from duetime.api.access.auth import Gate
from duetime.api.access.revocations import Revocations
from duetime.api.functions.registry import FunctionRegistry
from duetime.api.grpc import deliveries
from duetime.api.grpc.calls import Door
from duetime.api.grpc.deliveries import DeliveriesParts, DeliveryCalls
from duetime.v1 import deliveries_pb2 as pb


class Aborted(Exception):
    """How grpc ends a call."""


class Context:
    """A call whose Hello is there."""

    def invocation_metadata(self) -> tuple[()]:
        return ()

    async def read(self) -> bytes:
        hello = pb.Hello(consumer="w", ack_mode=pb.ACK_MODE_MANUAL)
        hello.credits.add().source.queue = "q"
        return pb.ClientMessage(hello=hello).SerializeToString()

    async def abort(self, code: grpc.StatusCode, details: str, metadata: Any) -> None:
        raise Aborted(code)


def test_a_stop_while_a_workers_functions_are_checked(monkeypatch):
    """The stop spoke to a session that had not begun, failed, and told nobody else."""

    async def main() -> None:
        begun, go_on = threading.Event(), threading.Event()

        def checked(functions: Any) -> list[Any]:
            begun.set()
            assert go_on.wait(20)
            return []

        monkeypatch.setattr(deliveries, "checked", checked)
        gate = Gate(tuple, tokens.digest)
        service: Any = SimpleNamespace(engine=None, running=None, functions=FunctionRegistry())
        unused: Any = None
        door = Door(gate, unused, unused)
        calls = DeliveryCalls(DeliveriesParts(service, unused, door, Revocations(gate), 1))
        context: Any = Context()
        call = asyncio.ensure_future(calls.behaviour(None, context))
        assert await asyncio.to_thread(begun.wait, 20)
        try:
            await calls.stop(0.0)
        finally:
            go_on.set()
        with pytest.raises(Aborted) as refused:
            await call
        assert refused.value.args == (grpc.StatusCode.UNAVAILABLE,)

    asyncio.run(main())
