"""`duetime token`: what is listed, and what is taken back."""

from __future__ import annotations

import json

import pytest

from duetime import wiring
from duetime.api.access import tokens
from duetime.cli.main import EXIT_ERROR, EXIT_OK, main


def test_names_and_roles_are_listed_and_nothing_else(tmp_path, capsys):
    token = tokens.new(tmp_path, "admin", "me")
    tokens.new(tmp_path, "read", "watch")
    assert main(["token", "list", "--data", str(tmp_path)]) == EXIT_OK
    shown = capsys.readouterr().out
    assert [line.split() for line in shown.splitlines()] == [
        ["name", "role"],
        ["me", "admin"],
        ["watch", "read"],
    ]
    assert main(["token", "list", "--data", str(tmp_path), "--json"]) == EXIT_OK
    listed = json.loads(capsys.readouterr().out)
    nothing: dict[str, object] = {"rate": None, "burst": None, "queues": [], "entityTypes": []}
    assert listed == [{"name": "me", "role": "admin"} | nothing, {"name": "watch", "role": "read"} | nothing]
    assert token not in (tmp_path / "tokens.json").read_text()


def test_without_tokens_the_list_says_so(tmp_path, capsys):
    assert main(["token", "list", "--data", str(tmp_path)]) == EXIT_OK
    said = capsys.readouterr()
    assert said.out == "" and "no tokens" in said.err


def test_a_token_is_taken_back_by_its_name(tmp_path, capsys):
    tokens.new(tmp_path, "admin", "me")
    tokens.new(tmp_path, "read", "watch")
    assert main(["token", "revoke", "me", "--data", str(tmp_path)]) == EXIT_OK
    assert [(each.name, each.role) for each in wiring.tokens(tmp_path)] == [("watch", "read")]
    assert "last token" not in capsys.readouterr().err
    assert main(["token", "revoke", "watch", "--data", str(tmp_path)]) == EXIT_OK
    assert "last token" in capsys.readouterr().err


def test_an_unknown_name_is_refused_with_the_known_names(tmp_path, capsys):
    tokens.new(tmp_path, "admin", "me")
    assert main(["token", "revoke", "you", "--data", str(tmp_path)]) == EXIT_ERROR
    assert "'me'" in capsys.readouterr().err
    assert main(["token", "revoke", "you", "--data", str(tmp_path / "elsewhere")]) == EXIT_ERROR
    assert "has no tokens" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists()


def test_a_token_carries_its_own_rate(tmp_path, capsys):
    folder = ["--data", str(tmp_path)]
    new = ["token", "new", *folder, "--rate"]
    assert main([*new, "100/s", "--burst", "10", "--name", "shop", "--json"]) == EXIT_OK
    assert json.loads(capsys.readouterr().out).items() >= {"rate": "100/s", "burst": 10}.items()
    assert main([*new, "5/10s", "--name", "slow"]) == EXIT_OK
    tokens.new(tmp_path, "admin", "me")
    capsys.readouterr()
    assert main(["token", "list", *folder]) == EXIT_OK
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["name", "role", "rate", "burst"], ["shop", "submit", "100/s", "10"],
        ["slow", "submit", "5/10s", "5"], ["me", "admin"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "said",
    [
        ["--rate", "often"], ["--rate", "0/s"], ["--rate", "9/9d"], ["--rate", "2000000/s"], ["--burst", "5"],
        ["--rate", "5/s", "--burst", "0"],
    ],
)  # fmt: skip
def test_a_rate_that_makes_no_sense_makes_no_token(tmp_path, capsys, said):
    assert main(["token", "new", "--data", str(tmp_path), *said]) == EXIT_ERROR
    assert wiring.tokens(tmp_path) == [] and capsys.readouterr().err


def test_a_rate_that_was_spoilt_in_the_file_is_noticed(tmp_path, capsys):
    tokens.new(tmp_path, "submit", "shop", "5/s")
    path = tmp_path / "tokens.json"
    path.write_text(path.read_text().replace("5/s", "5/x"))
    assert main(["token", "list", "--data", str(tmp_path)]) == EXIT_ERROR
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("roles", [["--role", "worker", "--role", "submit"], ["--role", "worker,submit"]])
def test_a_token_with_several_roles(tmp_path, capsys, roles):
    assert main(["token", "new", *roles, "--name", "both", "--data", str(tmp_path)]) == EXIT_OK
    assert "with role worker,submit" in capsys.readouterr().err
    assert [each.role for each in wiring.tokens(tmp_path)] == ["worker,submit"]
    assert main(["token", "list", "--data", str(tmp_path)]) == EXIT_OK
    assert capsys.readouterr().out.splitlines()[1].split() == ["both", "worker,submit"]


def test_the_default_role_is_submit(tmp_path, capsys):
    assert main(["token", "new", "--data", str(tmp_path), "--json"]) == EXIT_OK
    assert json.loads(capsys.readouterr().out)["role"] == "submit"
