"""What `duetime serve` says when it starts, and what it leaves behind when it does not."""

from __future__ import annotations

import re
import subprocess
import sys

from duetime.api.access import tokens
from tests.e2e.process import environment
from tests.http.server import ServerProcess


def serve(folder, *arguments, **settings):
    command = [sys.executable, "-m", "duetime", "serve", "--data", str(folder), "--grpc-port", "0"]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, timeout=60,
        env={**environment(), **settings},
    )  # fmt: skip


def run(command, **settings):
    """A line of what the server said, as somebody would type it."""
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60,
        env={**environment(), **settings},
    )  # fmt: skip


def test_a_refused_start_names_the_folder_and_leaves_nothing_there(tmp_path):
    folder = tmp_path / "its data"
    done = serve(folder, "--port", "0", "--host", "0.0.0.0")
    assert done.returncode == 1
    assert f"`duetime token new --role admin --data '{folder}'`" in done.stderr
    assert not folder.exists()


def test_a_held_folder_is_reported_alone(tmp_path):
    with ServerProcess(tmp_path / "data"):
        done = serve(tmp_path / "data", "--port", "0")
    assert done.returncode == 5
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["error", "hint"]


def test_a_port_that_is_taken_says_how_to_choose_another(tmp_path):
    with ServerProcess(tmp_path / "data") as server:
        done = serve(tmp_path / "other", "--port", server.url.rpartition(":")[2])
    assert done.returncode == 1
    assert "Choose another port with --port" in done.stderr and 'make run ARGS="--port 0' in done.stderr


def test_the_printed_command_works(tmp_path):
    token = tokens.new(tmp_path / "data", "admin", "me")
    with ServerProcess(tmp_path / "data", "--host", "0.0.0.0") as server:
        server.says("Ctrl-C stops it")
        said = "\n".join(server.words)
        assert re.fullmatch(r"http://localhost:\d+", server.url) and "every address" in said
        assert server.grpc.startswith("grpc://localhost:")
        assert f"  export DUETIME_URL={server.url}" in server.words
        asked = next(line for line in server.words if line.startswith("  curl "))
        done = run(asked, DUETIME_TOKEN=token)
        assert '"status":"SCHEDULED"' in done.stdout, done
        words = [line for line in server.words if "INFO" in line]
    assert words == []


def test_a_revoked_token_is_refused_at_once(tmp_path):
    folder = tmp_path / "data"
    token = tokens.new(folder, "admin", "me")
    tokens.new(folder, "read", "watch")
    duetime = f"{sys.executable} -m duetime"
    with ServerProcess(folder) as server:
        place = {"DUETIME_URL": server.url, "DUETIME_TOKEN": token}
        assert run(f"{duetime} list", **place).returncode == 0
        assert run(f"{duetime} token revoke me --data {folder}").returncode == 0
        done = run(f"{duetime} list", **place)
        assert done.returncode == 1
        assert "--token or in DUETIME_TOKEN" in done.stderr and "X-Duetime-Token" not in done.stderr
