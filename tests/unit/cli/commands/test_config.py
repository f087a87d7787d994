"""`duetime config`."""

from __future__ import annotations

import json

import pytest

from duetime.cli.main import main
from duetime.config import SETTINGS


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_show_prints_every_value_and_its_origin(tmp_path, monkeypatch, capsys):
    (tmp_path / "duetime.toml").write_text("[log]\nflush_ms = 250\n")
    monkeypatch.setenv("DUETIME_ENGINE__THREADS", "4")
    assert main(["config", "show"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["setting", "value", "from"]
    assert len(rows) == len(SETTINGS) + 1
    assert ["log.flush_ms", "250", "duetime.toml"] in rows
    assert ["engine.threads", "4", "DUETIME_ENGINE__THREADS"] in rows
    assert ["limits.lateness_guard", "true", "default"] in rows


def test_show_as_json(tmp_path, capsys):
    file = tmp_path / "other.toml"
    file.write_text("[limits]\nlateness_guard = false\n")
    assert main(["config", "show", "--json", "--config", str(file)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["limits.lateness_guard"] == {"value": False, "origin": str(file)}
    assert shown.keys() == SETTINGS.keys()


def test_defaults_can_be_shown_when_the_configuration_is_broken(monkeypatch, capsys):
    """The hint of every configuration error leads here."""
    monkeypatch.setenv("DUETIME_LOG__FLUSH_MS", "soon")
    assert main(["config", "show"]) == 1
    assert "config show --defaults" in capsys.readouterr().err
    assert main(["config", "show", "--defaults"]) == 0
    assert "a whole number from 1 to 60_000" in capsys.readouterr().out
    assert main(["config", "show", "--defaults", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["log.flush_ms"]["value"] == 1000


def test_check_looks_at_the_file_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DUETIME_LOG__FLUSH_MS", "soon")
    (tmp_path / "x.toml").write_text("[log]\nflush_ms = 250\n[data]\ndir = 'd'\n")
    assert main(["config", "check", "x.toml"]) == 0
    assert capsys.readouterr() == ("", f"x.toml is valid and sets 2 of {len(SETTINGS)} settings.\n")
    assert main(["config", "check", "x.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["given"] == ["data.dir", "log.flush_ms"]


def test_check_refuses_a_bad_file(tmp_path, capsys):
    (tmp_path / "x.toml").write_text("[log]\nflush = 250\n")
    assert main(["config", "check", "x.toml"]) == 1
    shown = capsys.readouterr()
    assert "There is no setting log.flush (from x.toml). Did you mean log.flush_ms?" in shown.err
    assert not shown.out
