"""One process owns a folder. A second one is told who does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from duetime import App, errors
from tests.e2e.process import environment

HOLDER = """
import sys
from duetime import App
with App(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "data")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert child.stdout is not None and child.stdout.readline() == "held\n"
    yield child
    if child.returncode is None:
        child.communicate("\n", timeout=30)
    assert child.returncode == 0


def test_a_second_process_gets_the_holder_of_the_folder(holder, tmp_path):
    app = App(str(tmp_path / "data"))
    with pytest.raises(errors.Held) as caught, app:
        pass
    assert caught.value.details["pid"] == holder.pid != os.getpid()
    assert caught.value.details["host"] == socket.gethostname()
    assert f"process {holder.pid} on {socket.gethostname()}" in str(caught.value)


def test_a_folder_can_be_opened_once_its_holder_has_ended(holder, tmp_path):
    app = App(str(tmp_path / "data"))
    with pytest.raises(errors.Held), app:
        pass
    holder.communicate("\n", timeout=30)
    with app:
        assert app.find().wait(10) == []


def test_the_command_line_says_it_too(holder, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "duetime", "demo", "--data", "data"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 5, "it may work later"
    assert f"held by process {holder.pid} on" in done.stderr and "hint: " in done.stderr
    assert "Traceback" not in done.stderr
