"""What the command line makes of its options."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest
import typer

from duetime.cli.args import filters, options
from duetime.cli.main import EXIT_UNREACHABLE, EXIT_USAGE, main
from duetime.errors import InvalidField
from duetime.timefmt import moment_of


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("https://x/y:1@2", {"callback": {"url": "https://x/y:1@2"}}),
        ("task:mail.send", {"task": {"name": "mail.send"}}),
        ("task:mail.send@mail", {"task": {"name": "mail.send", "queue": "mail"}}),
        ("stream:a:b", {"stream": {"name": "a:b"}}),
        ("entity:Account/4/2/deposit", {"entity": {"type": "Account", "id": "4/2", "message": "deposit"}}),
    ],
)
def test_a_target(text, target):
    assert options.target_of(text, {}) == target


@pytest.mark.parametrize("text", ["x", "task:", "stream:", "entity:A/1", "entity:A//m", "ftp://x"])
def test_an_invalid_target_is_refused(text):
    with pytest.raises(typer.BadParameter, match="is not a target"):
        options.target_of(text, {})


def test_webhook_options_are_for_webhooks_only():
    given = {"method": "put", "header": ["A: b:c", "D:"], "body": '{"e":1}', "batch": True}
    assert options.target_of("http://x", given) == {
        "callback": {
            "url": "http://x", "batch": True, "method": "PUT", "headers": {"A": "b:c", "D": ""},
            "body": {"e": 1},
        }
    }  # fmt: skip
    for name, value in given.items():
        with pytest.raises(typer.BadParameter, match="for webhooks"):
            options.target_of("task:x", {name: value})
    with pytest.raises(typer.BadParameter, match="Name: value"):
        options.target_of("http://x", {"header": ["nothing"]})


def test_times():
    at = "2030-01-01T00:00Z"
    assert options.new_fields({}) == {"delay_ms": 0}
    assert options.new_fields({"delay": "1h"}) == {"delay_ms": 3_600_000}
    assert options.new_fields({"at": at, "deadline": "5m"}) == {
        "execute_at": moment_of(1_893_456_000_000),
        "deadline": moment_of(1_893_456_300_000),
    }
    late = options.new_fields({"at": at, "deadline": "2030-01-02T00:00Z"})
    assert late["deadline"] == moment_of(1_893_542_400_000)
    with pytest.raises(typer.BadParameter, match="one of --in and --at"):
        options.new_fields({"delay": "1h", "at": at})
    with pytest.raises(InvalidField):
        options.new_fields({"delay": "soon"})


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"tier": "ultra", "priority": "-5"}, {"precision_tier": "ULTRA", "priority": -5}),
        ({"expired_action": "dead-letter"}, {"expired_action": "DEAD_LETTER"}),
        ({"ack": "async"}, {"ack_level": "ASYNC"}),
        ({"guarantee": "at-most-once"}, {"guarantee": "AT_MOST_ONCE"}),
        ({"priority": "high"}, {"priority": "HIGH"}),
        ({"lease": "5s", "slo": "1s"}, {"lease_ms": 5_000, "slo": {"max_tardiness_ms": 1_000}}),
        (
            {"attempts": 3, "retry_delay": "2m", "timeout": "5s"},
            {
                "redelivery": {"max_attempts": 3, "initial_delay_ms": 120_000, "max_delay_ms": 120_000},
                "timeout_ms": 5_000,
            },
        ),
        (
            {
                "retry_backoff": "FIXED", "retry_multiplier": 1.5, "no_retry_jitter": True,
                "retry_max_delay": "1h",
            },
            {
                "redelivery": {
                    "backoff": "fixed", "multiplier": 1.5, "jitter": False, "max_delay_ms": 3_600_000,
                }
            },
        ),
        (
            {"limit": ["t=20/s", "u:1=3", "v=5/10s,2"]},
            {
                "limits": [
                    {"key": "t", "rate": "20/s"},
                    {"key": "u:1", "concurrency": 3},
                    {"key": "v", "rate": "5/10s", "concurrency": 2},
                ]
            },
        ),
        ({"collapse_key": "k"}, {"collapse_key": "k"}),
        ({"collapse_key": "k", "collapse": "throttle"}, {"collapse_key": "k", "collapse": "THROTTLE"}),
        ({"unique": "k"}, {"unique": {"key": "k"}}),
        ({"unique": "k", "unique_until": "start"}, {"unique": {"key": "k", "until": "START"}}),
        (
            {"unique": "k", "unique_until": "1h"},
            {"unique": {"key": "k", "until": "TIME", "for_ms": 3_600_000}},
        ),
        ({"after": ["a", "b"], "after_on": "end"}, {"after": ["a", "b"], "after_on": "END"}),
        ({"key": "k", "on_duplicate": "RETURN"}, {"idempotency_key": "k", "on_duplicate": "return"}),
    ],
)  # fmt: skip
def test_options_become_fields(given: dict[str, Any], fields: dict[str, Any]):
    assert options.new_fields(given) == {"delay_ms": 0, **fields}


@pytest.mark.parametrize("limit", ["t", "=20/s", "t=", "t=fast", "t=20/s,x"])
def test_an_invalid_limit_is_refused(limit):
    with pytest.raises(typer.BadParameter, match="is not a limit"):
        options.new_fields({"limit": [limit]})


def test_until_goes_with_unique():
    with pytest.raises(typer.BadParameter, match="--unique"):
        options.new_fields({"unique_until": "start"})


def test_changes():
    changes = options.changed_fields(
        {"at": "2030-01-01T00:00Z", "deadline": "none", "tag": ["a=b"]}, options.PATCH
    )
    assert changes == {"execute_at": moment_of(1_893_456_000_000), "deadline": None, "tags": {"a": "b"}}
    hook = options.changed_fields({"callback": "http://y", "method": "put"}, options.REVIVE)
    assert hook == {"callback": {"url": "http://y", "method": "PUT"}}
    with pytest.raises(typer.BadParameter, match="require --callback"):
        options.changed_fields({"method": "put"}, options.REVIVE)
    with pytest.raises(typer.BadParameter, match="one of --in and --at"):
        options.changed_fields({"delay": "1h", "at": "now"}, options.PATCH)


def test_a_payload_is_json_a_file_or_stdin(tmp_path, monkeypatch):
    assert options.read_json('{"a": [1]}', "--payload") == {"a": [1]}
    (tmp_path / "p.json").write_text("[2]")
    assert options.read_json(f"@{tmp_path}/p.json", "--payload") == [2]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'"three"')))
    assert options.read_json("-", "--payload") == "three"
    for wrong in ("text", "@/does/not/exist", "{", ""):
        with pytest.raises(typer.BadParameter):
            options.read_json(wrong, "--payload")


def test_tags():
    assert options.tags(["a=b", "c=d=e", "f="]) == {"a": "b", "c": "d=e", "f": ""}
    for wrong in ("a", "=b"):
        with pytest.raises(typer.BadParameter):
            options.tags([wrong])


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
        ["revive", "x"], ["patch", "x", "--priority", "5"],
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
        ["patch", "x"],
        ["list", "--limit", "0"],
        ["dead-letters", "purge", "--all"],
        ["dead-letters", "revive"],
        ["dead-letters", "revive", "x", "--all"],
        ["dead-letters", "revive", "x", "--queue", "q"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_refused_before_a_request(command, capsys, monkeypatch):
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
