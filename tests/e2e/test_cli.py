"""The command line in pipes: data on stdout, words on stderr, exit codes, no escape codes, stable JSON."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.process import environment
from tests.http.server import ServerProcess

DUETIME = [sys.executable, "-m", "duetime"]
NOBODY = {"stream": {"name": "nobody"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("cli") / "data") as server:
        yield server


Run = Callable[..., subprocess.CompletedProcess]


@pytest.fixture
def run(server: ServerProcess) -> Run:
    """`duetime` with these arguments, in pipes. Colours are asked for, and must not come."""

    def run(*arguments: str, given: str | None = None, **variables: str) -> subprocess.CompletedProcess:
        env = {**environment(), "DUETIME_URL": server.url, "TERM": "xterm-256color", **variables}
        if "--help" not in arguments:
            env["FORCE_COLOR"] = "1"
        command = [*DUETIME, *arguments]
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, env=env, timeout=60, check=False
        )
        assert "\x1b" not in done.stdout
        return done

    return run


def test_an_intent_from_its_beginning_to_its_end(run, server):
    made = run(
        "schedule", "task:t@nobody", "--in", "1h", "--id", "cli-1", "-p", "-", "--tag", "a=b", given="[1]"
    )
    assert made.returncode == 0 and made.stdout == "cli-1\n"
    assert made.stderr.startswith("SCHEDULED: task:t@nobody at ") and "in 59 min" in made.stderr
    assert run("why", "cli-1").stdout.startswith("Its time has not come")
    assert run("fire", "cli-1").stdout == "cli-1  DUE\n"
    assert run("cancel", "cli-1").stdout == "cli-1  CANCELED\n"
    rows = [line.split() for line in run("history", "cli-1").stdout.splitlines()]
    assert rows[0] == ["time", "status", "delivery", "note"] and rows[-1][1] == "CANCELED"
    listed = run("list", "--tag", "a=b", "--status", "canceled")
    assert listed.stdout.splitlines()[1].split()[:2] == ["cli-1", "CANCELED"]


def test_json_is_what_the_server_sent(run, server):
    run("schedule", "stream:s", "--at", "2100-01-01T00:00Z", "--id", "cli-2")
    shown = run("get", "cli-2", "--json")
    assert shown.stdout.encode() == server.ask("GET", "/v1/intents/cli-2").body + b"\n" and not shown.stderr
    page = run("list", "--json", "--from", "2099-12-31T00:00Z", "--limit", "1")
    assert json.loads(page.stdout)["items"] == [json.loads(shown.stdout)]
    every = run("list", "--json", "--from", "2099-12-31T00:00Z", "--all")
    assert json.loads(every.stdout) == {"items": [json.loads(shown.stdout)], "nextCursor": None}
    none = run("list", "--json", "--tag", "no=such")
    assert json.loads(none.stdout) == {"items": [], "nextCursor": None}


@pytest.mark.parametrize(
    "command",
    ["health", "health --deep", "chronoscope", "timeline", "replay", "top", "list", "dead-letters list",
     "why cli-2", "history cli-2", "replay cli-2"],
)  # fmt: skip
def test_every_look_has_json_and_a_table(run, command):
    run("schedule", "stream:s", "--at", "2100-01-01T00:00Z", "--id", "cli-2")
    told = run(*command.split(), "--json")
    assert told.returncode == 0 and isinstance(json.loads(told.stdout), dict)
    shown = run(*command.split())
    assert shown.returncode == 0 and shown.stdout
    assert not [line for line in shown.stdout.splitlines() if line != line.rstrip()], "no spaces at the end"


def test_refusals_are_on_stderr_with_their_hint(run):
    refused = run("get", "no-such")
    assert refused.returncode == 1 and not refused.stdout
    assert "error: There is no intent with the id 'no-such'." in refused.stderr and "hint: " in refused.stderr
    first = ("task:t@nobody", "--in", "1h", "--id")
    run("schedule", *first, "cli-root")
    run("schedule", *first, "cli-leaf", "--after", "cli-root", "--after-on", "end")
    assert run("cancel", "cli-root", "--tree").stdout == "cli-root  CANCELED\n"
    assert "CANCELED" in run("get", "cli-leaf").stdout
    for number in range(3):
        run("schedule", "http://localhost:9/x", "--in", "1h", "--tag", f"bulk=b{number % 2}")
    assert run("cancel", "--tag", "bulk=b0").stdout == "2 of 2 cancelled\n"
    assert json.loads(run("cancel", "--tag", "bulk=b1", "--json").stdout)["done"] == 1
    assert run("cancel").returncode == run("cancel", "x", "--tag", "bulk=b1").returncode == 2
    both = run("cancel", "no-such", "cli-root")
    assert both.returncode == 1 and "no-such: There is no" in both.stderr
    assert both.stderr.count("There is no intent") == 1 and both.stderr.count("hint: ") == 1
    assert "could not be changed." in both.stderr
    rate = run("queues", "set", "mail", "--rate", "5").stderr
    assert "Expected a rate such as 20/s" in rate and "regex" not in rate
    assert run("list", "--status", "nonsense").returncode == 1
    assert run("schedule").returncode == 2
    away = run("list", "--url", "http://127.0.0.1:1")
    assert away.returncode == 4 and not away.stdout


def test_follow_writes_a_line_for_each_transition_at_once(run, server):
    env = {**environment(), "DUETIME_URL": server.url}
    following = subprocess.Popen(
        [*DUETIME, "follow", "--status", "scheduled", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
    )  # fmt: skip
    assert following.stdout is not None and following.stderr is not None
    try:
        assert following.stderr.readline().startswith("Following")
        lines: list[str] = []
        number = 0
        while not lines:  # until it is connected
            number += 1
            server.ask("POST", "/v1/intents", {"intentId": f"cli-3.{number}", "delayMs": 10**9, **NOBODY})
            os.set_blocking(following.stdout.fileno(), False)
            lines = following.stdout.readlines()
        os.set_blocking(following.stdout.fileno(), True)
        assert json.loads(lines[0])["intentId"].startswith("cli-3.")
        following.send_signal(signal.SIGINT)
        assert following.wait(30) == 0, "Ctrl-C is how it ends"
        assert "Traceback" not in following.stderr.read()
    finally:
        following.kill()
        following.wait()
        following.stdout.close()
        following.stderr.close()


def test_a_reader_that_leaves_is_no_error(run, server):
    batch = [{"delayMs": 10**9, **NOBODY} for _ in range(3_000)]
    assert server.ask("POST", "/v1/intents/batch", batch).status == 200
    env = {**environment(), "DUETIME_URL": server.url}
    listing = subprocess.Popen(
        [*DUETIME, "list", "--all"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    )
    assert listing.stdout is not None and listing.stderr is not None
    with listing:
        listing.stdout.readline()
        listing.stdout.close()
        assert "Traceback" not in listing.stderr.read()


def test_a_backup_of_a_running_server_can_be_started(run, server, tmp_path):
    run("schedule", "stream:s", "--at", "2100-01-01T00:00Z", "--id", "cli-4")
    done = run("backup", str(tmp_path / "copy"), "--data", str(server.folder), "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["position"] > 0, done.stderr
    again = run("backup", str(tmp_path / "copy"), "--data", str(server.folder))
    assert again.returncode == 1 and "is not empty" in again.stderr
    assert run("log", "verify", "--data", str(tmp_path / "copy")).returncode == 0
    with ServerProcess(tmp_path / "copy") as copy:
        assert run("get", "cli-4", "--url", copy.url).stdout.startswith("intent")


def test_tokens(run, tmp_path: Path):
    folder = tmp_path / "data"
    token = run("token", "new", "--role", "read", "--name", "me", "--data", str(folder)).stdout.strip()
    assert token.startswith("duetime_") and token not in (folder / "tokens.json").read_text()
    assert run("token", "new", "--role", "king", "--data", str(folder)).returncode == 1
    with ServerProcess(folder) as server:
        there = {"DUETIME_URL": server.url}
        refused = run("list", **there)
        assert refused.returncode == 1 and "hint: Pass a token with --token" in refused.stderr
        assert run("list", **there, DUETIME_TOKEN=token).returncode == 0
        assert run("list", "--token", token, **there).returncode == 0
        denied = run("schedule", "task:t", **there, DUETIME_TOKEN=token)
        assert denied.returncode == 1 and token not in denied.stderr


def test_the_shell_takes_lines_from_a_pipe(run):
    done = run("shell", given="schedule stream:s --in 9d --id cli-5\nget cli-5 --json\nnonsense\n")
    assert done.returncode == 1 and "cli-5\n" in done.stdout and '"intentId":"cli-5"' in done.stdout
    assert "unknown command 'nonsense'" in done.stderr


COMMANDS = (
    "schedule", "get", "list", "why", "history", "follow", "cancel", "fire", "revive", "dead-letters",
    "health", "top", "chronoscope", "timeline", "replay", "shell", "token", "backup",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(run, command):
    inner = {"dead-letters": ["list", "revive", "purge"], "token": ["new"]}.get(command, [None])
    for name in inner:
        done = run(command, *([name] if name else []), "--help")
        assert done.returncode == 0
        assert "Examples:" in done.stdout and f"duetime {command}" in done.stdout
        assert command == "shell" or "--json" in done.stdout
