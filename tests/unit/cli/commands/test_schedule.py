"""What `duetime schedule` makes of its command line."""

from __future__ import annotations

import io
import sys

import pytest
import typer

from duetime.cli.args import filters
from duetime.cli.commands import schedule
from duetime.cli.main import EXIT_UNREACHABLE, EXIT_USAGE, main
from duetime.client.app.times import moment_of
from duetime.errors import InvalidField


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("https://x/y:1@2", {"callback": {"url": "https://x/y:1@2", "batch": False}}),
        ("task:mail.send", {"task": {"name": "mail.send"}}),
        ("task:mail.send@mail", {"task": {"name": "mail.send", "queue": "mail"}}),
        ("stream:a:b", {"stream": {"name": "a:b"}}),
        ("entity:Account/4/2/deposit", {"entity": {"type": "Account", "id": "4/2", "message": "deposit"}}),
    ],
)
def test_a_target(text, target):
    assert schedule.target_of(text, None, None, None, False) == target


@pytest.mark.parametrize("text", ["x", "task:", "stream:", "entity:A/1", "entity:A//m", "ftp://x"])
def test_what_is_no_target_is_refused(text):
    with pytest.raises(typer.BadParameter, match="is not a target"):
        schedule.target_of(text, None, None, None, False)


def test_webhook_options_need_a_webhook():
    hook = schedule.target_of("http://x", "put", ["A: b:c", "D:"], '{"e":1}', True)
    assert hook == {
        "callback": {
            "url": "http://x", "batch": True, "method": "PUT", "headers": {"A": "b:c", "D": ""},
            "body": {"e": 1},
        }
    }  # fmt: skip
    for given in (("PUT", None, None, False), (None, ["A: b"], None, False), (None, None, "1", False)):
        with pytest.raises(typer.BadParameter, match="for webhooks"):
            schedule.target_of("task:x", *given)
    with pytest.raises(typer.BadParameter, match="Name: value"):
        schedule.target_of("http://x", None, ["nothing"], None, False)


def test_times():
    assert schedule._times(None, None, None) == {"delay_ms": 0}
    assert schedule._times("1h", None, None) == {"delay_ms": 3_600_000}
    at = schedule._times(None, "2030-01-01T00:00Z", "5m")
    assert at == {"execute_at": moment_of(1_893_456_000_000), "deadline": moment_of(1_893_456_300_000)}
    assert schedule._times(None, "2030-01-01T00:00Z", "2030-01-02T00:00Z")["deadline"] == moment_of(
        1_893_542_400_000
    )
    with pytest.raises(typer.BadParameter, match="one of --in and --at"):
        schedule._times("1h", "2030-01-01T00:00Z", None)
    with pytest.raises(InvalidField):
        schedule._times("soon", None, None)


def test_terms():
    assert schedule._terms("ultra", "-5", "dead-letter", "at-most-once", "async") == {
        "precision_tier": "ULTRA",
        "priority": -5,
        "expired_action": "DEAD_LETTER",
        "guarantee": "AT_MOST_ONCE",
        "ack_level": "ASYNC",
    }
    assert schedule._terms(None, "high", None, None, None) == {"priority": "HIGH"}
    assert schedule.retry_of(3, "2m", "5s") == {
        "redelivery": {"max_attempts": 3, "initial_delay_ms": 120_000, "max_delay_ms": 120_000},
        "timeout_ms": 5_000,
    }
    assert schedule.retry_of(None, None, None) == {}


def test_a_payload_is_json_a_file_or_stdin(tmp_path, monkeypatch):
    assert schedule.read_json('{"a": [1]}', "--payload") == {"a": [1]}
    (tmp_path / "p.json").write_text("[2]")
    assert schedule.read_json(f"@{tmp_path}/p.json", "--payload") == [2]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'"three"')))
    assert schedule.read_json("-", "--payload") == "three"
    for wrong in ("text", "@/does/not/exist", "{", ""):
        with pytest.raises(typer.BadParameter):
            schedule.read_json(wrong, "--payload")


def test_tags():
    assert filters.tags(["a=b", "c=d=e", "f="]) == {"a": "b", "c": "d=e", "f": ""}
    for wrong in ("a", "=b"):
        with pytest.raises(typer.BadParameter):
            filters.tags([wrong])


def test_a_filter():
    filter = filters.made(["dead-lettered", "due"], "fast", "q", "t", "A/1", ["k=v"], "2030-01-01T00:00Z")
    assert filter == {
        "status": "DEAD_LETTERED,DUE", "tier": "fast", "queue": "q", "task": "t", "entity": "A/1",
        "tags": {"k": "v"}, "since": moment_of(1_893_456_000_000),
    }  # fmt: skip
    assert filters.made() == {}


# A port of the machine itself on which nobody listens.
NOWHERE = ["--url", "http://127.0.0.1:1"]


@pytest.mark.parametrize(
    "command",
    [
        ["list"], ["get", "x"], ["why", "x"], ["history", "x"], ["cancel", "x"], ["fire", "x"],
        ["revive", "x"],
        ["schedule", "task:x"], ["follow"], ["health"], ["chronoscope"], ["timeline"], ["replay"], ["top"],
        ["dead-letters", "list"], ["dead-letters", "revive", "x"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_server_that_is_not_there_has_its_own_exit_code(command, capsys):
    assert main([*command, *NOWHERE]) == EXIT_UNREACHABLE
    shown = capsys.readouterr()
    assert not shown.out
    assert "error: http://127.0.0.1:1 cannot be reached: connection refused." in shown.err
    assert "hint: Is `duetime serve` running at http://127.0.0.1:1?" in shown.err


@pytest.mark.parametrize(
    "command",
    [
        ["schedule", "nothing"],
        ["schedule", "task:x", "--payload", "text"],
        ["schedule", "task:x", "--tag", "nothing"],
        ["list", "--limit", "0"],
        ["dead-letters", "purge", "--all"],
        ["dead-letters", "revive"],
        ["dead-letters", "revive", "x", "--all"],
        ["dead-letters", "revive", "x", "--queue", "q"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_reported_before_anything_is_sent(command, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main([*command, *NOWHERE]) == EXIT_USAGE
    assert not capsys.readouterr().out


def test_a_wrong_time_is_an_error_with_a_hint(capsys):
    assert main(["schedule", "task:x", "--at", "someday", *NOWHERE]) == 1
    assert "hint: Examples: " in capsys.readouterr().err


def test_a_token_is_never_shown(capsys):
    assert main(["list", "--token", "duetime_secret", *NOWHERE]) == EXIT_UNREACHABLE
    assert main(["list", "--token", "a bad secret", *NOWHERE]) == 1
    shown = capsys.readouterr()
    assert "secret" not in shown.out + shown.err


@pytest.mark.parametrize(
    ("said", "claim"),
    [
        ((None, None, None, None), {}),
        (("k", None, None, None), {"collapse_key": "k"}),
        (("k", "throttle", None, None), {"collapse_key": "k", "collapse": "THROTTLE"}),
        ((None, None, "k", None), {"unique": {"key": "k"}}),
        ((None, None, "k", "start"), {"unique": {"key": "k", "until": "START"}}),
        ((None, None, "k", "1h"), {"unique": {"key": "k", "until": "TIME", "for_ms": 3_600_000}}),
    ],
)
def test_keys_of_which_there_is_one(said, claim):
    assert schedule._claim(*said) == claim


def test_until_goes_with_unique():
    with pytest.raises(typer.BadParameter, match="--unique"):
        schedule._claim(None, None, None, "start")
