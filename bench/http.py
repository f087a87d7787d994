"""Creating intents over HTTP: against a bare echo, durable against not, one by one and in batches."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from multiprocessing.connection import Connection
from statistics import median

from bench.figure import Figure
from bench.serve import Server, in_process, load, request

COUNT = 15_000
BATCHES = 100
BATCH = 1_000
ROUNDS = 3


def run() -> list[Figure]:
    return asyncio.run(_run())


async def _run() -> list[Figure]:
    single, durable = _create("ASYNC"), _create("DURABLE")
    body = b"[" + b",".join([_intent("ASYNC")] * BATCH) + b"]"
    batch = request("POST", "/v1/intents/batch", body)
    brief = request("POST", "/v1/intents/batch", body, prefer="return=minimal")
    echoes, singles, durables, batches, briefs = [], [], [], [], []
    with in_process(_echo) as pipe, Server() as server:
        port = await asyncio.to_thread(pipe.recv)
        for _ in range(ROUNDS):  # in turn, so that a busy machine is busy for all of them
            echoes.append(await _rate(port, 32, single, COUNT))
            singles.append(await _rate(server.port, 32, single, COUNT))
            durables.append(await _rate(server.port, 64, durable, COUNT))
            batches.append(BATCH * await _rate(server.port, 2, batch, BATCHES))
            briefs.append(BATCH * await _rate(server.port, 2, brief, BATCHES))
    echo, one, synced, whole = median(echoes), median(singles), median(durables), median(batches)
    note = f"median of {ROUNDS}"
    return [
        Figure("bare Starlette + msgspec echo, 32 connections", echo, "requests/s", note=note),
        Figure("POST /v1/intents ASYNC, 32 connections", one, "requests/s", note=note),
        Figure("... against the echo", one / echo, "ratio", floor=0.4),
        Figure("POST /v1/intents DURABLE, 64 connections", synced, "requests/s", note=note),
        Figure("... against ASYNC", synced / one, "ratio", floor=0.6),
        Figure("batch create, 1,000 a request", whole, "intents/s", floor=60_000, note=note),
        Figure("... against the echo", whole / echo, "ratio"),
        Figure("... with Prefer: return=minimal", median(briefs), "intents/s", note=note),
    ]


def _intent(ack: str) -> bytes:
    return json.dumps(
        {
            "delayMs": 86_400_000,
            "ackLevel": ack,
            "callback": {"url": "http://localhost:9/hook"},
            "payload": {"order": 12345, "customer": "c-678"},
        }
    ).encode()


def _create(ack: str) -> bytes:
    return request("POST", "/v1/intents", _intent(ack))


async def _rate(port: int, connections: int, one: bytes, count: int) -> float:
    requests: Iterator[bytes] = itertools.repeat(one, count)
    good, seconds = await load(port, connections, requests)
    assert good == count, f"{count - good} of {count} requests were refused"
    return count / seconds


def _echo(pipe: Connection) -> None:
    """The least that a server of this kind does: decode, encode, answer."""
    import msgspec
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from duetime.api.http.server import bind
    from duetime.wire.intent import NewIntent

    decoder = msgspec.json.Decoder(NewIntent)
    encoder = msgspec.json.Encoder()

    async def echo(call: Request) -> Response:
        return Response(encoder.encode(decoder.decode(await call.body())), media_type="application/json")

    app = Starlette(routes=[Route("/v1/intents", echo, methods=["POST"])])
    listener = bind("127.0.0.1", 0)
    config = uvicorn.Config(
        app, http="httptools", ws="none", loop="asyncio", lifespan="off", access_log=False, log_config=None
    )
    pipe.send(listener.getsockname()[1])
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))
