"""A real process is killed in the middle of a real checkpoint; what is found is one moment, whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from duetime.store.sqlite.store import SqliteStore
from duetime.store.store import SEQ_MAX

MANY = 3_000

CHILD = f"""
import sys
from pathlib import Path
from duetime.store.sqlite.store import SqliteStore
from duetime.testing.contracts.store_tools import change, got, make, moment, put, save

store = SqliteStore(Path(sys.argv[1]))
stop = int(sys.argv[2])
put(store, *(make(seq, 90_000_000, payload=b"first", key=f"k{{seq}}") for seq in range(1, {MANY} + 1)))
save(store, 1)
for seq in range(1, {MANY} + 1):
    change(store, got(store, f"i{{seq}}"), payload=b"second" * 50)
for step, job in enumerate(store.checkpoint(moment(2))):
    if step == stop:
        print("ready", flush=True)
        sys.stdin.read()  # killed here
    job()
print("ready", flush=True)
sys.stdin.read()
"""


def run_and_kill(path: Path, stop: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(stop)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL


@pytest.mark.parametrize(("stop", "position"), [(1, 1), (4, 1), (7, 1), (999, 2)])
def test_a_killed_checkpoint_leaves_the_earlier_one_whole(tmp_path, stop, position):
    path = tmp_path / "store.db"
    run_and_kill(path, stop)
    store = SqliteStore(path)
    saved = store.load()
    assert saved is not None and saved.position == position
    found = store.page(None, None, SEQ_MAX, 2 * MANY)
    assert len(found) == MANY
    assert {intent.payload for intent in found} == {b"first" if position == 1 else b"second" * 50}
    assert store.by_key("k7") is not None
    store.close()
