"""`duetime token`: what is listed, and what is taken back."""

from __future__ import annotations

import json

from duetime import wiring
from duetime.cli.main import EXIT_ERROR, EXIT_OK, main


def test_names_and_roles_are_listed_and_nothing_else(tmp_path, capsys):
    token = wiring.new_token(tmp_path, "admin", "me")
    wiring.new_token(tmp_path, "read", "watch")
    assert main(["token", "list", "--data", str(tmp_path)]) == EXIT_OK
    shown = capsys.readouterr().out
    assert [line.split() for line in shown.splitlines()] == [
        ["name", "role"],
        ["me", "admin"],
        ["watch", "read"],
    ]
    assert main(["token", "list", "--data", str(tmp_path), "--json"]) == EXIT_OK
    listed = json.loads(capsys.readouterr().out)
    assert listed == [{"name": "me", "role": "admin"}, {"name": "watch", "role": "read"}]
    assert token not in (tmp_path / "tokens.json").read_text()


def test_no_tokens_are_said_in_words(tmp_path, capsys):
    assert main(["token", "list", "--data", str(tmp_path)]) == EXIT_OK
    said = capsys.readouterr()
    assert said.out == "" and "no tokens" in said.err


def test_a_token_is_taken_back_by_its_name(tmp_path, capsys):
    wiring.new_token(tmp_path, "admin", "me")
    wiring.new_token(tmp_path, "read", "watch")
    assert main(["token", "revoke", "me", "--data", str(tmp_path)]) == EXIT_OK
    assert wiring.tokens(tmp_path) == [("watch", "read")]
    assert "last one" not in capsys.readouterr().err
    assert main(["token", "revoke", "watch", "--data", str(tmp_path)]) == EXIT_OK
    assert "last one" in capsys.readouterr().err


def test_a_name_that_nobody_has_is_refused_with_those_there_are(tmp_path, capsys):
    wiring.new_token(tmp_path, "admin", "me")
    assert main(["token", "revoke", "you", "--data", str(tmp_path)]) == EXIT_ERROR
    assert "'me'" in capsys.readouterr().err
    assert main(["token", "revoke", "you", "--data", str(tmp_path / "elsewhere")]) == EXIT_ERROR
    assert "none at all" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists()
