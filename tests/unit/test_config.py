"""Settings: layers, origins, and messages that say what is wrong, where, and what would be right."""

from __future__ import annotations

import re

import msgspec
import pytest

from duetime import limits
from duetime.config import SECTIONS, SETTINGS, Config, load
from duetime.errors import BadConfig
from duetime.settings import EngineSettings, LogSettings, TiersSettings


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def toml(tmp_path):
    def write(text, name="duetime.toml"):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return write


TIERS = ", ".join(limits.TIER_NAMES)


def message_of(**arguments):
    arguments.setdefault("environ", {})
    with pytest.raises(BadConfig) as caught:
        load(arguments.pop("path", None), **arguments)
    return caught.value.message


# The model.


def test_there_are_fewer_than_fifty_settings():
    assert len(SETTINGS) < 50


def test_units_are_in_the_names():
    numbers = [setting for setting in SETTINGS.values() if setting.kind is int]
    unitless = [
        setting.name
        for setting in numbers
        if not re.search(r"_?(ms|bytes|bytes_max|max|count|port)$", setting.key)
    ]
    # Counts of the thing they are named after.
    assert {name.partition(".")[0] for name in unitless} <= {"tiers", "engine"}


@pytest.mark.parametrize("name", SETTINGS)
def test_every_default_is_allowed_and_explained(name):
    setting = SETTINGS[name]
    setting.check(setting.default, "default")
    assert setting.description.endswith(".")


def test_the_defaults_stand_in_limits():
    config = Config()
    assert config.log.flush_ms == limits.FLUSH_MS
    assert config.tiers.permits == limits.TIER_PERMITS
    assert config.intents.default_tier in limits.TIER_NAMES


def test_a_config_from_code_is_checked():
    config = Config(log=LogSettings(flush_ms=20), tiers=TiersSettings(ultra=1))
    assert (config.log.flush_ms, config.log.history_bytes) == (20, limits.LOG_HISTORY_BYTES)
    with pytest.raises(
        BadConfig, match=r"engine.threads is 0 \(from code\), but must be a whole number from 1"
    ):
        Config(engine=EngineSettings(threads=0))


def test_a_config_cannot_be_changed():
    with pytest.raises(AttributeError):
        Config().log.flush_ms = 3  # type: ignore[misc]


def test_a_changed_copy_is_checked():
    with pytest.raises(BadConfig):
        msgspec.structs.replace(Config(), log=LogSettings(flush_ms=0))


# The layers.


def test_an_empty_configuration_has_the_defaults():
    loaded = load(environ={})
    assert loaded.config == Config()
    assert loaded.origins == dict.fromkeys(SETTINGS, "default")


def test_each_layer_lies_over_the_one_before(toml):
    path = toml("[log]\nflush_ms = 1\nhistory_bytes = 1\ndisk_reserve_bytes = 1\n")
    environ = {"DUETIME_LOG__FLUSH_MS": "2", "DUETIME_LOG__HISTORY_BYTES": "2"}
    loaded = load(path, environ=environ, flags={"log.flush_ms": 3, "data.dir": None})
    log = loaded.config.log
    assert (log.flush_ms, log.history_bytes, log.disk_reserve_bytes) == (3, 2, 1)
    assert loaded.origins["log.flush_ms"] == "flag"
    assert loaded.origins["log.history_bytes"] == "DUETIME_LOG__HISTORY_BYTES"
    assert loaded.origins["log.disk_reserve_bytes"] == str(path)
    assert loaded.origins["data.dir"] == "default"


def test_the_file_of_the_current_folder_is_read(toml):
    toml("[data]\ndir = 'elsewhere'\n")
    loaded = load(environ={})
    assert loaded.config.data.dir == "elsewhere"
    assert loaded.origins["data.dir"] == "duetime.toml"


def test_the_environment_is_the_process_own(monkeypatch):
    monkeypatch.setenv("DUETIME_ENGINE__THREADS", "3")
    assert load().config.engine.threads == 3


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("DUETIME_LIMITS__LATENESS_GUARD", "false", "limits.lateness_guard", False),
        ("DUETIME_LIMITS__LATENESS_GUARD", "True", "limits.lateness_guard", True),
        ("DUETIME_LIMITS__LATENESS_GUARD", "0", "limits.lateness_guard", False),
        ("DUETIME_LIMITS__PENDING_MAX", "1_000", "limits.pending_max", 1000),
        ("DUETIME_INTENTS__DEFAULT_TIER", "ULTRA", "intents.default_tier", "ULTRA"),
        ("DUETIME_DATA__DIR", "7", "data.dir", "7"),
    ],
)
def test_the_environment_is_text_and_becomes_what_the_setting_is(variable, text, name, value):
    loaded = load(environ={variable: text})
    assert SETTINGS[name].value_in(loaded.config) == value
    assert loaded.origins[name] == variable


def test_other_variables_are_not_ours():
    environ = {"DUETIME_URL": "http://localhost", "PATH": "/bin", "OTHER__THING": "1"}
    assert load(environ=environ).config == Config()


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_can_be_given_in_every_layer(name, toml):
    setting = SETTINGS[name]
    written = msgspec.json.encode(setting.default).decode()
    section = f"[{setting.section}]\n{setting.key} = {written}\n"
    assert load(toml(section), environ={}).origins[name].endswith("duetime.toml")
    assert load(environ={setting.variable: str(setting.default)}).origins[name] == setting.variable
    assert load(environ={}, flags={name: setting.default}).origins[name] == "flag"


# What is wrong, where, and what would be right.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[log]\nflush_msec = 1\n",
            "There is no setting log.flush_msec (from F). Did you mean log.flush_ms?",
        ),
        (
            "[engine]\nflush_ms = 1\n",
            "There is no setting engine.flush_ms (from F). Did you mean log.flush_ms?",
        ),
        ("[logs]\nflush_ms = 1\n", "There is no setting [logs] (from F). Did you mean [log]?"),
        ("flush_ms = 1\n", "There is no setting flush_ms (from F). Did you mean log.flush_ms?"),
        ("[log]\nzebra = 1\n", "There is no setting log.zebra (from F). There is no setting like it."),
        ("log = 1\n", "log is 1 (from F), but must be a table: [log]."),
        ("[log]\nflush_ms = 0\n", "log.flush_ms is 0 (from F), but must be a whole number from 1 to 60_000."),
        (
            "[log]\nflush_ms = 1.5\n",
            "log.flush_ms is 1.5 (from F), but must be a whole number from 1 to 60_000.",
        ),
        (
            "[engine]\nthreads = true\n",
            "engine.threads is True (from F), but must be a whole number from 1 to 1_024.",
        ),
        ("[data]\ndir = ''\n", "data.dir is '' (from F), but must be a non-empty text."),
        ("[data]\ndir = 5\n", "data.dir is 5 (from F), but must be a non-empty text."),
        ("[limits]\nlateness_guard = 1\n", "limits.lateness_guard is 1 (from F), but must be true or false."),
        (
            "[intents]\ndefault_tier = 'fast'\n",
            f"intents.default_tier is 'fast' (from F), but must be one of {TIERS}.",
        ),
    ],
)
def test_a_mistake_in_the_file(toml, text, message):
    path = toml(text)
    assert message_of(path=path).replace(str(path), "F") == message


@pytest.mark.parametrize("text", ["flush_ms\n", "[log]\nflush_ms = 1\nflush_ms = 2\n"])
def test_a_file_that_is_not_toml_is_refused_with_the_line(toml, text):
    assert re.search(r"duetime.toml is not a TOML file: .*line \d", message_of(path=toml(text)))


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    assert "x.toml is not a TOML file" in message_of(path=tmp_path / "x.toml")


def test_a_file_that_is_named_must_exist(tmp_path):
    assert "nowhere.toml cannot be read: No such file" in message_of(path="nowhere.toml")
    assert "cannot be read: Is a directory" in message_of(path=tmp_path)


def test_mistakes_in_the_environment_name_the_variable():
    assert message_of(environ={"DUETIME_LOG__FLUSHMS": "1"}) == (
        "There is no setting DUETIME_LOG__FLUSHMS (from the environment). Did you mean DUETIME_LOG__FLUSH_MS?"
    )
    assert message_of(environ={"DUETIME_LOG__FLUSH_MS": "soon"}) == (
        "log.flush_ms is 'soon' (from DUETIME_LOG__FLUSH_MS), but must be a whole number from 1 to 60_000."
    )
    assert "must be true or false" in message_of(environ={"DUETIME_LIMITS__LATENESS_GUARD": "maybe"})


def test_mistakes_in_flags():
    assert message_of(flags={"log.flushms": 1}).endswith("(from a flag). Did you mean log.flush_ms?")
    assert message_of(flags={"engine.threads": 0}).startswith("engine.threads is 0 (from flag)")


def test_the_sections_are_the_model_s():
    assert list(SECTIONS) == list(Config.__struct_fields__)
