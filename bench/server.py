"""The server as a whole: a burst over all tiers, lateness at the receiver, the cost of doing nothing."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime
from multiprocessing.connection import Connection

from bench.figure import Figure
from bench.serve import Server, in_process, listen, load, request
from duetime.limits import TIER_NAMES, TIER_WINDOW_MS

EACH = 20_000
DELAYS_MS = (5, 10, 20, 30, 50)
BATCH = 1_000
LIGHT = 200
"""Intents of each tier, one every 10 ms, for the lateness of a server that is not busy."""
IDLE = 100_000
IDLE_S = 20.0


def run() -> list[Figure]:
    return [*asyncio.run(_burst()), *asyncio.run(_light()), *asyncio.run(_idle())]


async def _burst() -> list[Figure]:
    """All due at one instant, created before it; the receiver answers after a delay of its tier."""
    with in_process(_count) as receiver, Server() as server:
        port = await asyncio.to_thread(receiver.recv)
        due_s = time.time() + 15
        requests = (
            _batch(
                {
                    "executeAt": due_s,
                    "precisionTier": tier,
                    "ackLevel": "ASYNC",
                    "callback": {"url": f"http://127.0.0.1:{port}/{delay_ms}", "batch": True},
                    "payload": {"n": number},
                }
                for number in range(start, start + BATCH)
            )
            for tier, delay_ms in zip(TIER_NAMES, DELAYS_MS, strict=True)
            for start in range(0, EACH, BATCH)
        )
        good, seconds = await load(server.port, 2, requests)
        assert good == len(TIER_NAMES) * EACH // BATCH, "a batch was refused"
        assert time.time() < due_s, f"creating took {seconds:.1f} s: the burst began too early"
        receiver.send((len(TIER_NAMES) * EACH, due_s))
        arrived, last_s = await asyncio.to_thread(receiver.recv)
    return [
        Figure("burst over five tiers: delivered", arrived, "intents", floor=len(TIER_NAMES) * EACH),
        Figure("burst over five tiers: rate", arrived / (last_s - due_s), "intents/s", floor=20_000),
    ]


async def _light() -> list[Figure]:
    """One intent of each tier every 10 ms: the lateness the receiver sees."""
    with in_process(_note) as receiver, Server() as server:
        port = await asyncio.to_thread(receiver.recv)
        first_s = time.time() + 5
        intents = [
            {
                "executeAt": round(first_s + number * 0.01 + tier * 0.002, 3),
                "precisionTier": name,
                "ackLevel": "ASYNC",
                "callback": {"url": f"http://127.0.0.1:{port}/0"},
            }
            for number in range(LIGHT)
            for tier, name in enumerate(TIER_NAMES)
        ]
        await load(server.port, 1, iter([_batch(intents)]))
        receiver.send(len(intents))
        late_ms: dict[str, list[float]] = await asyncio.to_thread(receiver.recv)
    figures = []
    for name, window_ms in zip(TIER_NAMES, TIER_WINDOW_MS, strict=True):
        late = sorted(late_ms[name])
        assert late[0] >= 0, f"an intent of {name} came {-late[0]:.1f} ms early"
        p50, p99 = late[len(late) // 2], late[len(late) * 99 // 100]
        figures.append(Figure(f"lateness at the receiver {name} p50", p50, "ms", ceiling=window_ms / 10 + 2))
        figures.append(Figure(f"lateness at the receiver {name} p99", p99, "ms", ceiling=window_ms / 4 + 5))
    return figures


async def _idle() -> list[Figure]:
    """A hundred thousand intents wait for tomorrow."""
    with Server() as server:
        intent = {"delayMs": 86_400_000, "ackLevel": "ASYNC", "callback": {"url": "http://127.0.0.1:9/x"}}
        await load(server.port, 2, (_batch([intent] * BATCH) for _ in range(IDLE // BATCH)))
        await asyncio.sleep(10)  # tidy: the checkpoint behind the load
        began_s = server.cpu_s()
        await asyncio.sleep(IDLE_S)  # tidy: doing nothing is what is measured
        used = 100 * (server.cpu_s() - began_s) / IDLE_S
    return [Figure(f"server idle with {IDLE:,} pending", used, "% of a core", ceiling=1)]


def _batch(intents: Iterable[dict[str, object]]) -> bytes:
    body = json.dumps(list(intents)).encode()
    return request("POST", "/v1/intents/batch", body)


# Receivers, in processes of their own.


def _count(pipe: Connection) -> None:
    """Counts what arrives, until all is there or nothing comes any more."""

    async def main() -> None:
        seen = 0
        last_s = 0.0

        def note(at_s: float, top: bytes, body: bytes) -> None:
            nonlocal seen, last_s
            seen += body.count(b'"intentId"')
            last_s = at_s

        pipe.send(await listen(note))
        wanted, due_s = await asyncio.to_thread(pipe.recv)
        until_s = due_s + 120
        await _until(lambda: seen >= wanted or time.time() > until_s)
        pipe.send((seen, last_s))

    asyncio.run(main())


def _note(pipe: Connection) -> None:
    """Notes how late each intent is when it arrives."""

    async def main() -> None:
        late_ms: dict[str, list[float]] = defaultdict(list)

        def note(at_s: float, top: bytes, body: bytes) -> None:
            intent = json.loads(body)
            due_s = datetime.fromisoformat(intent["executeAt"]).timestamp()
            late_ms[intent["precisionTier"]].append(1000 * (at_s - due_s))

        pipe.send(await listen(note))
        wanted: int = await asyncio.to_thread(pipe.recv)
        await _until(lambda: sum(map(len, late_ms.values())) >= wanted)
        pipe.send(dict(late_ms))

    asyncio.run(main())


async def _until(done: Callable[[], bool]) -> None:
    while not done():
        await asyncio.sleep(0.05)  # tidy: a benchmark's receiver
