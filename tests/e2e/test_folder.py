"""A data folder that cannot be used is told as what it is: in one sentence, with an exit code of its own."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from pathlib import Path

import pytest

from duetime import App, errors
from duetime.cli.main import EXIT_DAMAGED, EXIT_LATER, EXIT_UNUSABLE
from tests.e2e.process import ROOT, environment

_NOBODY = 65534


def run(
    *arguments: str, prepare: Callable[[], None] | None = None, **more: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "duetime", *arguments],
        capture_output=True, text=True, env=environment() | more, timeout=60, check=False, preexec_fn=prepare,
    )  # fmt: skip


def serve(data: Path, prepare: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    """As a service is started: with the folder in the environment."""
    ports = ("--port", "0", "--grpc-port", "0")
    return run("serve", *ports, prepare=prepare, DUETIME_DATA__DIR=str(data))


def told(ended: subprocess.CompletedProcess[str], code: int) -> str:
    """The one sentence."""
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr
    lines = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, ended.stderr
    if code != EXIT_DAMAGED:
        assert "backup" not in ended.stderr
    return lines[0]


def make(folder: Path) -> None:
    with App(str(folder)):
        pass


def without_privilege() -> None:
    """Root may do what the modes of files forbid, unless it drops the right to (PR_CAPBSET_DROP)."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2, 3):  # DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER
        assert libc.prctl(24, capability, 0, 0, 0) == 0


def change(folder: Path, mode: int, uid: int) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(mode if path.is_dir() else mode & 0o666)
        os.chown(path, uid, uid)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "data").write_text("a file")
    assert "data" in told(serve(tmp_path / "data"), EXIT_UNUSABLE)
    with pytest.raises(errors.Denied, match="Not a directory"), App(str(tmp_path / "data")):
        pass


@pytest.mark.skipif(os.getuid() != 0, reason="needs a folder of somebody else")
def test_a_folder_without_permission(tmp_path):
    data = tmp_path / "data"
    make(data)
    change(data, 0o700, _NOBODY)
    looks = ["log", "verify", "--data", str(data)]
    assert "Permission denied" in told(serve(data, without_privilege), EXIT_UNUSABLE)
    change(data, 0o755, _NOBODY)
    assert "Permission denied" in told(serve(data, without_privilege), EXIT_UNUSABLE)
    looked = run(*looks, prepare=without_privilege)
    assert looked.returncode == 0, f"it only reads: {looked.stderr}"


def test_of_several_openers_of_a_new_folder_the_losers_get_its_holder(tmp_path):
    program = "import sys\nfrom duetime import App\nwith App(sys.argv[1]):\n    sys.stdin.readline()\n"
    command = [sys.executable, "-c", program, str(tmp_path / "data")]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
        for _ in range(5)
    ]
    with ThreadPoolExecutor(5) as pool:
        ends = {pool.submit(child.wait, 60): child for child in started}
        # The winner alone waits for a line; the others end by themselves.
        losers = [ends[end] for end in islice(as_completed(ends), 4)]
        (winner,) = (child for child in started if child not in losers)
        assert winner.poll() is None
        assert winner.stdin is not None
        winner.stdin.close()
    assert winner.returncode == 0
    for loser in losers:
        last = loser.communicate()[1].splitlines()[-1]
        assert "duetime.errors.Held" in last and "is held by" in last
    assert winner.stderr is not None
    with winner.stderr as words:
        assert words.read() == ""


def test_a_folder_that_is_held_is_not_touched(tmp_path):
    """A newer version that is refused must not migrate the store of the one that runs."""
    with App(str(tmp_path / "data")):
        store = sqlite3.connect(tmp_path / "data" / "store.db")
        store.execute("PRAGMA user_version = 2")
        store.commit()
        told(serve(tmp_path / "data"), EXIT_LATER)
        assert store.execute("PRAGMA user_version").fetchone() == (2,)
        store.execute("PRAGMA user_version = 3")
        store.close()


def test_a_version_that_is_too_new_does_not_loop(tmp_path):
    make(tmp_path / "data")
    store = sqlite3.connect(tmp_path / "data" / "store.db")
    store.execute("PRAGMA user_version = 999")
    store.close()
    assert "newer than" in told(serve(tmp_path / "data"), EXIT_UNUSABLE)
    unit = (ROOT / "deploy/systemd/duetime.service").read_text()
    assert f"RestartPreventExitStatus=2 {EXIT_DAMAGED} {EXIT_UNUSABLE}\n" in unit


def test_a_store_and_a_log_of_two_folders_are_refused(tmp_path):
    for name in ("a", "b"):
        make(tmp_path / name)
    shutil.copytree(tmp_path / "a", tmp_path / "c")
    make(tmp_path / "c")
    shutil.copy(tmp_path / "b" / "store.db", tmp_path / "a" / "store.db")
    assert "do not belong together" in told(serve(tmp_path / "a"), EXIT_DAMAGED)
    verified = run("log", "verify", "--data", str(tmp_path / "a"))
    assert verified.returncode == EXIT_DAMAGED and "do not belong together" in verified.stdout


def test_a_backup_is_of_the_same_folder(tmp_path):
    make(tmp_path / "a")
    assert run("backup", "--data", str(tmp_path / "a"), str(tmp_path / "b")).returncode == 0
    assert (tmp_path / "b" / "log" / "id").read_bytes() == (tmp_path / "a" / "log" / "id").read_bytes()
    shutil.copy(tmp_path / "b" / "store.db", tmp_path / "a" / "store.db")
    make(tmp_path / "a")


def test_a_full_disk_under_a_backup_or_a_look_is_not_damage(tmp_path):
    """A limit of the size of files stands for the disk: the copy of the store cannot be written."""
    make(tmp_path / "a")

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, 8_192))

    told(run("log", "verify", "--data", str(tmp_path / "a"), prepare=little_room), EXIT_LATER)
    told(run("backup", "--data", str(tmp_path / "a"), str(tmp_path / "b"), prepare=little_room), EXIT_LATER)
    assert not (tmp_path / "b").exists()


FORKED = """
import os, sys
from duetime import App
from duetime.errors import Closed
app = App(sys.argv[1])

@app.task
async def quick(number: int) -> int:
    return number

with app:
    handle = quick.schedule(1).wait()
    child = os.fork()
    if child == 0:
        try:
            handle.result().wait(20)
        except Closed as error:
            os.write(1, str(error).encode())
            sys.stdin.readline()
            os._exit(0)
        os._exit(1)
    os.write(1, b"%d\\n" % child)
    os.kill(os.getpid(), 9)
"""


def test_a_forked_child_raises_and_does_not_keep_the_lock(tmp_path):
    data = tmp_path / "data"
    parent = subprocess.Popen(
        [sys.executable, "-c", FORKED, str(data)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert parent.wait(30) == -9
    try:
        make(data)  # the child lives, and the folder is free
    finally:
        out, _ = parent.communicate("\n", timeout=30)
    assert "is a fork of it" in out
