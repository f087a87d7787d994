"""Every log that was ever written adds up to the same state today."""

from __future__ import annotations

from typing import Union, get_args

import msgspec
import pytest

from duetime.kernel import retry
from duetime.protocol import record as codec
from duetime.protocol.command import Cancel, Command, Resize
from duetime.protocol.record import Unreadable
from tests.golden.compare import holds
from tools import golden

VERSIONS = sorted(path.stem for path in golden.FOLDER.glob("*.log"))
REGENERATE = "if no user has such data yet: python -m tools.golden --replace-unreleased"


def load(version):
    data = (golden.FOLDER / f"{version}.log").read_bytes()
    return data, msgspec.json.decode((golden.FOLDER / f"{version}.json").read_bytes(), type=golden.Golden)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_log_adds_up_to_the_same(version):
    data, saved = load(version)
    for story in saved.stories:
        state, effects, records = golden.replay(data[story.start : story.end])
        assert records == story.records
        assert effects == story.effects, f"seed {story.seed}: other effects than then; {REGENERATE}"
        assert state == story.state, f"seed {story.seed}: another state than then; {REGENERATE}"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_place_in_a_record_means_the_same(version):
    check_places(version)


def check_places(version):
    data, saved = load(version)
    today = msgspec.json.decode(msgspec.json.encode(golden.samples(data)))
    for name, command in saved.samples.items():
        assert holds(today[name], command), f"{name} reads otherwise than then; {REGENERATE}"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_command_is_in_it(version):
    _, saved = load(version)
    missing = {kind.__name__ for kind in get_args(Command)} - set(saved.samples)
    # A release knows only the commands it had; the newest must have all.
    assert not missing or version != golden.UNRELEASED, f"choose other seeds: {missing} never came"


def test_a_released_log_is_never_replaced(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    (tmp_path / "0.0.1.log").write_bytes(b"as it was")
    assert golden.main(["add", "0.0.1"]) == 1
    assert (tmp_path / "0.0.1.log").read_bytes() == b"as it was"
    assert golden.main([]) == golden.main(["add", golden.UNRELEASED]) == 2
    assert "never changes" in capsys.readouterr().err


def reading(monkeypatch, kind, *fields):
    """Read logs as code would in which this command had these fields."""
    tag = kind.__struct_config__.tag
    other = msgspec.defstruct(kind.__name__, fields, frozen=True, array_like=True, tag=tag)
    kinds = tuple(other if each is kind else each for each in get_args(Command))
    decoder = msgspec.msgpack.Decoder(tuple[Union[kinds], ...])  # type: ignore[valid-type]  # noqa: UP007
    monkeypatch.setattr(codec, "decode", decoder.decode)


def test_a_field_that_changed_places_is_noticed(monkeypatch):
    reading(monkeypatch, Resize, ("permits", int), ("tier", int))
    with pytest.raises(AssertionError, match="Resize reads otherwise"):
        check_places(golden.UNRELEASED)


def test_a_field_with_another_name_is_noticed(monkeypatch):
    reading(monkeypatch, Cancel, ("intent_id", str), ("revision", int, 0))
    with pytest.raises(AssertionError, match="Cancel reads otherwise"):
        check_places(golden.UNRELEASED)


def test_a_field_that_is_appended_is_welcome(monkeypatch):
    reading(
        monkeypatch,
        Cancel,
        ("id", str),
        ("revision", int, 0),
        ("request", str | None, None),
        ("tree", bool, False),
        ("within", tuple[str, ...] | None, None),
        ("why", str, ""),
    )
    check_places(golden.UNRELEASED)


def test_another_meaning_is_noticed(monkeypatch):
    """The same records, and code that does something else with them."""
    monkeypatch.setattr(retry, "delay_ms", lambda policy, id, attempt: policy.initial_delay_ms)
    with pytest.raises(AssertionError, match="than then"):
        test_the_log_adds_up_to_the_same(golden.UNRELEASED)


def test_a_command_from_the_future_is_not_skipped():
    with pytest.raises(Unreadable):
        codec.decode(codec.encode([["frobnicate", 1]]))
