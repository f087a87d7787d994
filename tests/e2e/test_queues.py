"""`duetime queues`: what a queue allows is changed while the server runs, and is kept by it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from duetime.cli.main import EXIT_ERROR, EXIT_OK, EXIT_USAGE
from tests.e2e.process import environment
from tests.http.server import ServerProcess

Run = Callable[..., subprocess.CompletedProcess]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("queues") / "data") as server:
        yield server


@pytest.fixture
def run(server: ServerProcess) -> Run:
    def run(*arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "duetime", "queues", *arguments]
        env = {**environment(), "DUETIME_URL": server.url, "COLUMNS": "200"}
        return subprocess.run(command, capture_output=True, text=True, env=env, timeout=60, check=False)

    return run


def one(run: Run, *arguments: str) -> dict:
    done = run(*arguments, "--json")
    assert done.returncode == EXIT_OK, done.stderr
    found: dict = json.loads(done.stdout)
    return found


def listed(run: Run, *more: str) -> dict[str, dict]:
    return {lane["name"]: lane for lane in json.loads(run("list", "--json", *more).stdout)}


def restart(server: ServerProcess, *, kill: bool) -> None:
    server.kill() if kill else server.stop()
    server.start()


EVERYTHING = (
    "--concurrency", "20", "--rate", "100/s", "--burst", "10", "--depth", "3", "--priority", "HIGH",
    "--order", "expected",
)  # fmt: skip
SAID = {
    "concurrency": 20, "rate": "100/s", "burst": 10, "pendingMax": 3, "priority": 300, "order": "EXPECTED",
}  # fmt: skip


@pytest.mark.parametrize("kill", [False, True])
def test_every_setting_is_kept_across_a_restart(run, server, kill):
    name = f"kept-{kill}"
    assert one(run, "set", name, *EVERYTHING).items() >= SAID.items()
    assert one(run, "pause", name)["paused"]
    restart(server, kill=kill)
    found = listed(run)[f"task:{name}"]
    assert found["paused"] and found.items() >= SAID.items()
    assert one(run, "resume", name).items() >= {**SAID, "paused": False}.items()
    nothing = ("--concurrency", "none", "--rate", "none", "--burst", "1", "--depth", "none", "--priority")
    one(run, "set", name, *nothing, "0", "--order", "fifo")
    restart(server, kill=kill)
    assert f"task:{name}" not in listed(run), "it is as any other now"


def test_omitted_fields_are_unchanged(run):
    one(run, "set", "partly", "--concurrency", "5")
    found = one(run, "set", "partly", "--rate", "7/10s")
    assert (found["concurrency"], found["rate"], found["burst"]) == (5, "7/10s", 1)
    assert one(run, "set", "partly", "--concurrency", "none")["concurrency"] is None


def test_the_settings_hold(run, server):
    one(run, "set", "tight", "--depth", "2", "--priority", "LOW")
    said = {"delayMs": 3_600_000, "task": {"name": "t", "queue": "tight"}}
    made = [server.ask("POST", "/v1/intents", said) for _ in range(3)]
    assert [each.status for each in made] == [201, 201, 429]
    assert made[0].json["priority"] == -300
    assert json.loads(made[2].body)["errorCode"] == 42902


def test_other_lanes_by_their_whole_name(run):
    for name in ("stream:news", "callback:example.com", "entity:Cart/7"):
        assert one(run, "pause", name)["name"] == name
    found = listed(run)
    assert found["stream:news"]["paused"] and "entity:Cart/7" not in found
    assert listed(run, "--all")["entity:Cart/7"]["paused"]


def test_for_people_it_is_a_table(run):
    done = run("set", "shown", *EVERYTHING)
    heading, row = (line.split() for line in done.stdout.splitlines())
    assert heading == [
        "queue", "pending", "ready", "running", "concurrency", "rate", "depth", "priority", "order",
    ]  # fmt: skip
    assert row == ["shown", "0", "0", "0", "20", "100/s", "(burst", "10)", "3", "300", "expected"]
    assert "paused" in run("pause", "shown").stdout
    assert any(line.split()[0] == "shown" for line in run("list").stdout.splitlines())


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("set", "q"), EXIT_USAGE),
        (("set", "q", "--concurrency", "many"), EXIT_USAGE),
        (("set", "q", "--priority", "soon"), EXIT_USAGE),
        (("set", "q", "--rate", "often"), EXIT_ERROR),
        (("set", "q", "--concurrency", "0"), EXIT_ERROR),
        (("set", "q", "--order", "random"), EXIT_ERROR),
        (("set", "entity:Cart/7", "--concurrency", "5"), EXIT_ERROR),
        (("pause", "stream:"), EXIT_ERROR),
    ],
)
def test_invalid_combinations_are_refused(run, arguments, code):
    done = run(*arguments)
    assert done.returncode == code and done.stderr and not done.stdout


def test_an_empty_list_says_so(tmp_path: Path):
    with ServerProcess(tmp_path / "data") as server:
        env = {**environment(), "DUETIME_URL": server.url}
        command = [sys.executable, "-m", "duetime", "queues", "list"]
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (EXIT_OK, "") and "No queue" in done.stderr
