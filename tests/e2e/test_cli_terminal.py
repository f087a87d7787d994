"""The command line in a real terminal: the shell, completion, follow, top, colours, widths."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from tests.e2e.process import environment
from tests.http.listener import Listener
from tests.http.server import ServerProcess

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]")
PROMPT = "duetime>"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("terminal") / "data") as server:
        yield server


Terminal = Callable[..., pexpect.spawn]


@pytest.fixture
def terminal(server: ServerProcess, tmp_path: Path) -> Iterator[Terminal]:
    """Starts `duetime` in a pseudo-terminal of a given width."""
    with contextlib.ExitStack() as stack:

        def start(*arguments: str, columns: int = 80, rows: int = 40) -> pexpect.spawn:
            env = {
                **environment(),
                "DUETIME_URL": server.url,
                "TERM": "xterm-256color",
                "XDG_STATE_HOME": str(tmp_path / "state"),
                "PROMPT_TOOLKIT_NO_CPR": "1",
            }
            for decided_elsewhere in ("NO_COLOR", "COLUMNS", "LINES"):
                env.pop(decided_elsewhere, None)
            child = pexpect.spawn(
                sys.executable, ["-m", "duetime", *arguments], env=env, encoding="utf-8", timeout=30,
                dimensions=(rows, columns),
            )  # fmt: skip
            stack.callback(child.close, force=True)
            return child

        yield start


def typed(text: str) -> str:
    """A text as a terminal shows it: with escapes between any two of its letters."""
    return r"(?:\x1b\[[0-9;?]*[a-zA-Z])*".join(map(re.escape, text))


def ended(child: pexpect.spawn) -> int:
    child.expect(pexpect.EOF)
    child.close()
    return int(child.exitstatus)


def test_the_shell(terminal, tmp_path):
    shell = terminal("shell")
    shell.expect("Ctrl-D quits")
    shell.expect(PROMPT)
    # Each completion is waited for, as people do.
    for keys, completed in (
        ("chro\t", "chronoscope"),
        ("\x15schedule str\t", "stream:"),
        ("s --in 1h --id shell-1 --tie\t", "--tier"),
        ("U\t", "ULTRA"),
    ):
        shell.send(keys)
        shell.expect(typed(completed))
    shell.send("\r")
    shell.expect("shell-1\r\n")
    shell.expect("SCHEDULED: stream:s .*ULTRA")
    shell.expect(PROMPT)
    shell.send("get she\t")
    shell.expect(typed("get shell-1"))
    shell.send("\r")
    shell.expect("intent.*shell-1")
    shell.expect("precision tier.*ULTRA")
    shell.expect(PROMPT)
    shell.send("cancel not-this\x03")
    shell.expect(PROMPT)
    shell.send("\x1b[A")  # the line before: get, not the forgotten one
    shell.expect(typed("get shell-1"))
    shell.send("\x03")
    shell.expect(PROMPT)
    shell.send("help why\r")
    shell.expect("in one sentence why")
    shell.expect(PROMPT)
    shell.send("nonsense\r")
    shell.expect("unknown command 'nonsense'")
    shell.expect(PROMPT)
    shell.send("\x04")
    assert ended(shell) == 0
    history = (tmp_path / "state" / "duetime" / "history").read_text()
    assert "+get shell-1" in history and "not-this" not in history


def test_a_command_in_the_shell_can_be_stopped(terminal):
    shell = terminal("shell")
    shell.expect(PROMPT)
    shell.send("follow --intent shell-2\r")
    shell.expect("Following")
    shell.sendintr()
    shell.expect(PROMPT)
    shell.send("schedule stream:s --in 1h --id shell-2\r")
    shell.expect("shell-2\r\n")
    shell.expect(PROMPT)
    shell.send("exit\r")
    assert ended(shell) == 0


def test_history_is_kept_from_one_shell_to_the_next(terminal):
    for _ in range(2):
        shell = terminal("shell")
        shell.expect(PROMPT)
        shell.send("config show --defaults\r")
        shell.expect("log.flush_ms")
        shell.expect(PROMPT)
        shell.sendeof()
        assert ended(shell) == 0
    shell = terminal("shell")
    shell.expect(PROMPT)
    shell.send("\x1b[A")
    shell.expect("config show --defaults")


def test_follow_shows_transitions_in_colours_until_ctrl_c(terminal, server):
    with Listener(server) as events:  # events are kept from the first listener on
        made = server.create()
        first = events.until(lambda seen: seen.data["intentId"] == made["intentId"])
    server.ask("POST", f"/v1/intents/{made['intentId']}/cancel")
    following = terminal("follow", "--status", "canceled", "--after", first.id)
    following.expect("Following")
    following.expect("CANCELED")
    assert "\x1b[" in following.before, "a terminal gets colours"
    following.sendintr()
    assert ended(following) == 0


def test_top_is_a_screen_that_moves_and_leaves_no_trace(terminal, server):
    top = terminal("top", "--every", "0.2")
    top.expect(re.escape("\x1b[?1049h"))  # a screen of its own
    top.expect("duetime top")
    top.expect("ULTRA")
    top.expect("duetime top")  # and again
    top.send("q")
    top.expect(re.escape("\x1b[?1049l"))  # the old one is back
    assert ended(top) == 0
    again = terminal("top")
    again.expect("STANDARD")
    again.sendintr()
    assert ended(again) == 0
    assert terminal("top", "--count", "1").expect([pexpect.EOF]) == 0


@pytest.mark.parametrize("columns", [40, 80, 160])
def test_tables_and_charts_fit_the_terminal(terminal, server, columns):
    server.create(intentId=f"a-rather-long-id-for-a-narrow-terminal-{columns}", tags={"k": "v"})
    for command in (["list", "-n", "5"], ["timeline", "--to", "in 2h", "--slots", "8"], ["chronoscope"]):
        child = terminal(*command, columns=columns)
        child.expect(pexpect.EOF)
        lines = ESCAPES.sub("", child.before).splitlines()
        # A sentence is left to the terminal to fold.
        wide = [line for line in lines if len(line) > columns and not line.endswith(".")]
        assert lines and not wide, f"{command} is wider than {columns}: {wide}"


def test_purging_asks_first(terminal):
    asked = terminal("dead-letters", "purge", "--all")
    asked.expect("Permanently delete up to 1000 dead letters")
    asked.sendline("n")
    assert ended(asked) == 1
    asked = terminal("dead-letters", "purge", "--all")
    asked.expect("Permanently delete")
    asked.sendline("y")
    asked.expect("0 of 0 purged")
    assert ended(asked) == 0


def test_json_is_indented_for_people(terminal, server):
    made = server.create()
    child = terminal("get", made["intentId"], "--json")
    child.expect(pexpect.EOF)
    assert f'{{\r\n  "intentId": "{made["intentId"]}",\r\n' in child.before


# What others wrote: it colours nothing, reorders nothing, and no line of it looks like one of ours.

HOSTILE = "a\x1b]0;PWNED\x07\x1b[2J\x9b31m\r\nFORGED line\u202eb\u2066\u2028FORGED too [red]x[/red]\x7f"
ACTED_UPON = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def hostile(server: ServerProcess) -> None:
    """Intents with such text wherever text may stand."""
    server.create(
        intentId="hostile-waits",
        callback={"url": "http://localhost:9/x", "body": HOSTILE},
        payload={HOSTILE: HOSTILE},
        tags={"k": HOSTILE},
        shardKey=HOSTILE,
    )
    for kind, target in (
        ("task", {"name": HOSTILE}),
        ("entity", {"type": "T", "id": HOSTILE, "message": "m"}),
    ):
        new = {"delayMs": 3_600_000, kind: target, "tags": {"k": HOSTILE}}
        assert server.ask("POST", "/v1/intents", new).status == 201


@pytest.mark.parametrize(
    "arguments",
    [
        ["get", "hostile-waits"],
        ["get", "hostile-waits", "--json"],
        ["list", "--tag", f"k={HOSTILE}", "-n", "5"],
        ["list", "-n", "500"],
        ["list", "-n", "500", "--json"],
        ["why", "hostile-waits"],
        ["history", "hostile-waits", "--json"],
        ["replay", "--intent", "hostile-waits"],
        ["timeline", "--to", "in 2h"],
        ["chronoscope"],
        ["queues", "list", "--all"],
        ["top", "--count", "1"],
        ["get", HOSTILE],
        ["get", "hostile-waits", "--no-such-option", HOSTILE],
        ["list", "--status", HOSTILE],
        ["list", "--limit", HOSTILE],
        ["schedule", HOSTILE],
        [HOSTILE],
        ["health", "--url", f"http://{HOSTILE}"],
    ],
    ids=lambda arguments: " ".join(arguments).replace(HOSTILE, "HOSTILE"),
)
def test_text_of_others_keeps_to_its_place(terminal, hostile, arguments):
    child = terminal(*arguments, columns=160)
    child.expect(pexpect.EOF)
    shown = ESCAPES.sub("", child.before)
    assert shown.strip() and not ACTED_UPON.findall(shown), repr(shown)
    assert "\x1b[2J" not in child.before, repr(child.before)
    assert not [line for line in re.split("[\r\n]+", shown) if line.strip().startswith("FORGED")]
