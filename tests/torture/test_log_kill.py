"""A process that appends is killed for real: everything it reported is there."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import duetime
from duetime.log.file import FileLog
from duetime.testing.contracts.log import bodies_of

WRITER = """
import asyncio, sys
from duetime.log.file import FileLog
from duetime.log.frame import Frame

async def main():
    log = FileLog(sys.argv[1], segment_bytes_max=200_000, allocate_bytes=30_000)
    await log.open()
    number = int(sys.argv[2])
    while True:
        body = b"%d:" % number + b"x" * (number * 7919 % 20_000)
        await log.append(await log.tail(), Frame(1, number, number, 1, 0, 0, body))
        if number % 3 == 0:
            await log.sync()
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
        number += 1

asyncio.run(main())
"""


def kill_after(directory: Path, first: int, reports: int) -> int:
    """Let a writer report so many appends, kill it, and return the last one it reported."""
    source = str(Path(duetime.__path__[0]).parent)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory), str(first)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert writer.stdout is not None
    last = first - 1
    for _ in range(reports):
        last = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    # What it reported before the signal reached it counts too; a line cut short was not reported.
    for line in writer.stdout.read().split(b"\n")[:-1]:
        last = int(line)
    writer.stdout.close()
    assert writer.wait() == -signal.SIGKILL
    return last


def test_everything_reported_before_kill_is_there(tmp_path: Path, kill_rounds: int) -> None:
    async def bodies() -> list[bytes]:
        log = FileLog(tmp_path)
        await log.open()
        found = await bodies_of(log)
        await log.close()
        return found

    number = 0
    for round_number in range(2 * kill_rounds):
        last = kill_after(tmp_path, number, 1 + round_number * 37 % 90)
        found = asyncio.run(bodies())
        assert len(found) in (last + 1, last + 2), "all that was reported, and perhaps the one under way"
        for index, body in enumerate(found):
            assert body == b"%d:" % index + b"x" * (index * 7919 % 20_000)
        number = len(found)
