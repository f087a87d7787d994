"""Looks into the log of a server that writes all the time: a sound folder is never called damaged."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.e2e.process import environment
from tests.http.server import ServerProcess

LOOKS = {"usual": 20, "trimmed": 8}


def look(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "duetime", "log", command, "--data", str(folder)]
    return subprocess.run(
        arguments, capture_output=True, text=True, env=environment(), timeout=120, check=False
    )


# Small segments, little history and frequent checkpoints: the log is rotated and trimmed during a look.
TRIMMED = {"log__segment_bytes_max": 1 << 20, "log__history_bytes": 1 << 23, "store__checkpoint_ms": 500}
PAYLOADS = {"usual": "", "trimmed": "x" * 20_000}


@pytest.mark.parametrize(("kind", "settings"), [("usual", {}), ("trimmed", TRIMMED)])
def test_a_sound_folder_is_sound_while_it_is_written(tmp_path, kind, settings):
    data, stop = tmp_path / "data", threading.Event()
    failures: list[Exception] = []

    def write() -> None:
        try:
            while not stop.is_set():
                server.create(delayMs=3_600_000, payload=PAYLOADS[kind])
        except Exception as error:
            failures.append(error)

    with ServerProcess(data, **settings) as server:
        writer = threading.Thread(target=write)
        writer.start()
        try:
            for number in range(LOOKS[kind]):
                ended = look(data, ("verify", "segments", "verify", "dump")[number % 4])
                assert ended.returncode == 0, (number, ended.stderr, ended.stdout[-2000:])
        finally:
            stop.set()
            writer.join()
    assert not failures
