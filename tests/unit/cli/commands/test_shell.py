"""The shell's lines and what Tab offers."""

from __future__ import annotations

import io
import sys

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from duetime import config
from duetime.cli.args import server
from duetime.cli.commands import shell
from duetime.cli.main import COMMANDS, EXIT_UNREACHABLE, EXIT_USAGE, main
from duetime.cli.ui import observed
from duetime.cli.ui.completion import Completing, offers


def test_a_line_is_a_command_line(capsys):
    assert shell.run("config show --defaults") == 0
    assert "log.flush_ms" in capsys.readouterr().out
    assert shell.run("duetime config show --defaults  # with its name, and a comment") == 0
    assert shell.run("") == 0 == shell.run("   # nothing")


@pytest.mark.parametrize("line", ["exit", "quit", " exit "])
def test_exit_and_quit_leave_the_shell(line):
    assert shell.run(line) is None


@pytest.mark.parametrize("line", ["nothing", "shell", 'get "open', "get"])
def test_a_wrong_line_is_reported_and_the_shell_continues(line, capsys):
    assert shell.run(line) == EXIT_USAGE
    assert capsys.readouterr().err


def test_help_lists_the_commands_or_tells_of_one(capsys):
    assert shell.run("help") == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in COMMANDS)
    assert shell.run("help why") == 0
    assert "in one sentence why" in capsys.readouterr().out


def test_lines_may_be_piped_in(monkeypatch, capsys):
    lines = "config show --defaults\nwhy x\nexit\nnothing\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    assert main(["shell", "--url", "http://127.0.0.1:1"]) == 1, "one of them failed"
    shown = capsys.readouterr()
    assert "log.flush_ms" in shown.out
    assert "http://127.0.0.1:1 cannot be reached" in shown.err and "nothing" not in shown.err
    assert server.default == server.Place(), "the address was for the shell only"


def test_an_address_on_the_command_line_wins_over_the_shells(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("why x --url http://127.0.0.1:2\n"))
    assert main(["shell", "--url", "http://127.0.0.1:1"]) == 1
    assert "http://127.0.0.1:2 cannot be reached" in capsys.readouterr().err


def test_a_bug_does_not_end_the_shell(monkeypatch, capsys):
    monkeypatch.setattr("duetime.cli.commands.config.show", None)

    def broken(*args: object) -> int:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("duetime.cli.main.main", broken)
    assert shell.run("config show") == 1
    assert "ZeroDivisionError: a bug" in capsys.readouterr().err


def test_the_history_is_in_the_users_folder(tmp_path):
    assert config.state_folder({"XDG_STATE_HOME": str(tmp_path)}) == tmp_path / "duetime"
    for odd in ({}, {"XDG_STATE_HOME": "relative"}):
        assert config.state_folder(odd).parts[-3:] == (".local", "state", "duetime")


# Completion.


def test_commands_options_and_values_are_offered():
    assert offers([], "sch") == ["schedule", "schedules"]
    assert "shell" not in offers([], "") and {"help", "exit", "list"} <= set(offers([], ""))
    assert offers(["help"], "wh") == ["why"] and offers(["help", "why"], "") == []
    assert offers(["list"], "--st") == ["--status"]
    assert "--status" not in offers(["list", "--status", "DUE"], "--")
    assert offers(["list", "--status"], "dead") == ["DEAD_LETTERED"]
    assert offers(["list", "--order"], "d") == ["due"]
    assert offers(["schedule", "--ack"], "") == ["ASYNC", "BATCH_DEFERRED", "DURABLE"]
    assert offers(["schedule"], "ta") == ["task:"] and offers(["schedule", "task:x"], "") == []
    assert offers(["dead-letters"], "re") == ["revive"]
    assert offers(["dead-letters", "purge"], "--y") == ["--yes"]
    assert offers(["nothing"], "") == []
    assert offers(["why", "--status"], "d") == [], "not an option of this command"


def test_ids_that_were_seen_are_offered_newest_first():
    for number in range(600):
        observed.add(f"seen-{number}")
    observed.add("seen-590")
    assert offers(["get"], "seen-59")[:2] == ["seen-590", "seen-599"]
    assert offers(["dead-letters", "revive"], "seen-590") == ["seen-590"]
    assert offers(["follow", "--intent"], "seen-590") == ["seen-590"]
    assert offers(["get"], "seen-1") == [f"seen-{n}" for n in range(199, 99, -1)], "the oldest are forgotten"


@pytest.mark.parametrize(
    ("line", "completed"),
    [("chron", ["chronoscope "]), ("schedule ta", ["task:"]), ("list --ord", ["--order "]), ('get "a', [])],
)
def test_the_only_offer_is_complete(line, completed):
    found = Completing().get_completions(Document(line), CompleteEvent())
    assert [each.text for each in found] == completed


def test_an_unreachable_server_is_an_exit_code_in_the_shell_too():
    assert shell.run("get x --url http://127.0.0.1:1") == EXIT_UNREACHABLE
