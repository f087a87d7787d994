"""The file log: encoding and writing batches, against plain writes of the same bytes; and fdatasync."""

from __future__ import annotations

import asyncio
import os
import time
from statistics import median

from bench.figure import Figure, folder
from duetime.log.file import FileLog
from duetime.log.frame import Frame
from duetime.protocol import record as codec
from duetime.protocol.command import Submit
from duetime.protocol.intent import Item
from duetime.protocol.terms import Task, Terms

RECORDS = 1_000
BATCHES = 150
ROUNDS = 5


def run() -> list[Figure]:
    terms = (Terms(Task("bench"), "task:default"),)
    items = tuple(
        Item(f"0193e4a5b6c-9f3a6b21-{n:06x}", 0, 1_800_000_000_000 + n, b"x" * 96, fresh=True)
        for n in range(RECORDS)
    )
    commands = [Submit(terms, items)]  # what schedule_many writes
    size = len(codec.encode(commands))
    ours, plain = [], []
    for _ in range(ROUNDS):  # side by side, so that both see the same noise
        plain.append(_plain_writes(codec.encode(commands)))
        ours.append(asyncio.run(_log_writes(commands)))
    rate = RECORDS * BATCHES / median(ours)
    ratio = median(plain_s / our_s for plain_s, our_s in zip(plain, ours, strict=True))
    return [
        Figure(
            "file log, ASYNC, encoding included", rate, "records/s", note=f"{size / RECORDS:.0f} bytes each"
        ),
        Figure("... of plain os.write of the same bytes", ratio, "ratio", floor=0.5),
    ]


def _plain_writes(body: bytes) -> float:
    with folder() as path:
        file = os.open(path / "plain", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        start = time.perf_counter()
        for _ in range(BATCHES):
            os.write(file, body)
        seconds = time.perf_counter() - start
        os.close(file)
        return seconds


async def _log_writes(commands: list[Submit]) -> float:
    with folder() as path:
        log = FileLog(path / "log")
        await log.open()
        tail = await log.tail()
        start = time.perf_counter()
        for number in range(BATCHES):
            body = codec.encode(commands)
            tail = await log.append(tail, Frame(1, number, 1 + number * RECORDS, RECORDS, 0, 0, body))
        seconds = time.perf_counter() - start
        await log.close()
        return seconds
