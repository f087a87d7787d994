"""The command line: what goes where, what the exit code says, and what is imported."""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys

import pytest
import typer

from duetime.cli import main as cli
from duetime.cli.ui import output
from duetime.errors import Busy, Damaged


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def failing(monkeypatch):
    """Make `duetime config show` raise this error."""

    def fail_with(error):
        def load(_file):
            raise error

        monkeypatch.setattr("duetime.config.load", load)

    return fail_with


def test_help_lists_every_command_and_the_exit_codes(capsys):
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in cli.COMMANDS)
    assert "Exit codes: 0 " in shown


def test_no_command_is_a_mistake_that_shows_the_help(capsys):
    assert cli.main([]) == cli.EXIT_USAGE
    assert "Usage: duetime" in "".join(capsys.readouterr())


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("duetime 0.")


@pytest.mark.parametrize("arguments", [["frobnicate"], ["--frobnicate"], ["config", "check"]])
def test_a_wrong_command_line_is_2(arguments, capsys):
    assert cli.main(arguments) == cli.EXIT_USAGE
    shown = capsys.readouterr()
    assert "Usage:" in shown.err and not shown.out


@pytest.mark.parametrize(
    ("error", "code"),
    [(Busy("Too much."), cli.EXIT_ERROR), (Damaged("segment 7 at byte 12."), cli.EXIT_DAMAGED)],
)
def test_an_error_is_a_message_and_a_hint_without_a_traceback(failing, capsys, error, code):
    failing(error)
    assert cli.main(["config", "show"]) == code
    shown = capsys.readouterr()
    assert shown.err == f"error: {error.message}\nhint: {error.hint}\n"
    assert not shown.out


def test_a_bug_is_not_hidden(failing):
    failing(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        cli.main(["config", "show"])


@pytest.mark.parametrize(("given", "code"), [(None, 0), (0, 0), (3, 3), ("a reason", 1)])
def test_a_command_may_choose_its_exit_code(failing, capsys, given, code):
    failing(SystemExit(given))
    assert cli.main(["config", "show"]) == code
    assert capsys.readouterr().err == ("a reason\n" if given == "a reason" else "")


def test_help_imports_no_command():
    """So that the help does not wait for an engine."""
    script = (
        "import sys; from duetime.cli.main import COMMANDS, main; main(['--help']);"
        "sys.exit(str([c.module for c in COMMANDS.values() if c.module in sys.modules]))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.stderr.strip() == "[]"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_is_where_the_table_says(name):
    command = cli.COMMANDS[name]
    found = getattr(importlib.import_module(command.module), command.attribute)
    assert isinstance(found, typer.Typer) or found.__doc__, "its --help needs a text"


def test_asserts_must_be_on():
    run = subprocess.run(
        [sys.executable, "-O", "-m", "duetime", "config", "show"], capture_output=True, text=True, check=False
    )
    assert run.returncode == cli.EXIT_ERROR
    assert "python -O" in run.stderr and not run.stdout


def test_python_m_duetime():
    run = subprocess.run(
        [sys.executable, "-m", "duetime", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("duetime ")


# Output.


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_piped_table_is_plain_and_never_cut(capsys):
    output.table(("name", "count"), [("x" * 300, 5), ("[red]y[/red]", 12)], right=("count",))
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split() == ["name", "count"]
    assert first == "x" * 300 + "      5"
    assert second.startswith("[red]y[/red]") and second.endswith("   12")


def test_colours_appear_on_a_terminal_only(monkeypatch, capsys):
    output.fail(Busy("Too much."))
    assert "\x1b" not in capsys.readouterr().err
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    output.fail(Busy("Too much."))
    assert "\x1b[1;31merror: " in screen.getvalue()


def test_json_is_one_line_for_programs_and_indented_for_people(monkeypatch, capsys):
    output.json({"a": [1]})
    assert capsys.readouterr().out == '{"a":[1]}\n'
    monkeypatch.setattr(sys, "stdout", screen := Screen())
    output.json({"a": [1]})
    assert screen.getvalue().count("\n") > 1 and json.loads(screen.getvalue()) == {"a": [1]}


def test_messages_go_to_stderr_and_data_to_stdout(capsys):
    output.words("working")
    output.text("data")
    assert capsys.readouterr() == ("data\n", "working\n")
