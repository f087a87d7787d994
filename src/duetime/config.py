"""Reads the settings: name, type, default, range, and the origin of each value.

Later sources override earlier ones: the defaults, `duetime.toml`, the environment (`DUETIME_SECTION__KEY`),
flags. An unknown name, or a value with a wrong type or out of its range, raises `BadConfig`; the message
contains the origin of the value. This is the only module that reads the environment.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

import msgspec.inspect
from msgspec import Struct

from duetime import limits
from duetime.errors import BadConfig
from duetime.settings import (
    DataSettings,
    EngineSettings,
    IntentsSettings,
    LimitsSettings,
    LogSettings,
    ServerSettings,
    StoreSettings,
    Tier,
    TiersSettings,
    WebhooksSettings,
)

FILE_NAME: Final = "duetime.toml"
ENVIRONMENT_PREFIX: Final = "DUETIME_"
DEFAULT_ORIGIN: Final = "default"


class Config(Struct, frozen=True, kw_only=True):
    """All settings. `Config()` has the defaults; values given in code are checked like all others."""

    data: DataSettings = DataSettings()
    log: LogSettings = LogSettings()
    store: StoreSettings = StoreSettings()
    intents: IntentsSettings = IntentsSettings()
    limits: LimitsSettings = LimitsSettings()
    tiers: TiersSettings = TiersSettings()
    engine: EngineSettings = EngineSettings()
    server: ServerSettings = ServerSettings()
    webhooks: WebhooksSettings = WebhooksSettings()

    def __post_init__(self) -> None:
        for setting in SETTINGS.values():
            setting.check(setting.value_in(self), "code")


class Setting(Struct, frozen=True, kw_only=True):
    """The description of one setting, read from the model."""

    section: str
    key: str
    kind: type
    default: Any
    description: str
    least: int = 0
    most: int = 0
    choices: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        return f"{ENVIRONMENT_PREFIX}{self.section}__{self.key}".upper()

    @property
    def expected(self) -> str:
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.kind is bool:
            return "true or false"
        if self.kind is int:
            return f"a whole number from {self.least:_} to {self.most:_}"
        return "a non-empty text" if self.default else "a text"

    @property
    def secret(self) -> bool:
        """Whether its value must not be shown."""
        return self.key == "secret"

    def value_in(self, config: Config) -> object:
        return getattr(getattr(config, self.section), self.key)

    def check(self, value: object, origin: str) -> None:
        """Raise `BadConfig` unless the value has the right type and is in its range."""
        of_kind = type(value) is self.kind  # not isinstance: `threads = true` is a mistake
        if of_kind and self._in_range(value):
            return
        shown = "..." if self.secret else repr(value)
        raise _bad(f"{self.name} is {shown} (from {origin}), but must be {self.expected}.")

    def _in_range(self, value: Any) -> bool:
        if self.choices:
            return str(value) in self.choices
        if self.kind is int:
            return bool(self.least <= value <= self.most)
        return self.kind is bool or bool(value) or not self.default

    def parse(self, text: str) -> object:
        """Convert a value from the environment, where all values are text. `check` validates the result."""
        if self.kind is int:
            try:
                return int(text)
            except ValueError:
                return text
        if self.kind is bool:
            return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
        return text


def _bad(message: str) -> BadConfig:
    return BadConfig(message, hint="`duetime config show --defaults` lists every setting with its range.")


def _read_settings() -> Iterator[Setting]:
    sections = msgspec.inspect.type_info(Config)
    assert isinstance(sections, msgspec.inspect.StructType)
    for section in sections.fields:
        assert isinstance(section.type, msgspec.inspect.StructType)
        for field in section.type.fields:
            assert isinstance(field.type, msgspec.inspect.Metadata), f"{field.name} has no description"
            kind, extra = field.type.type, field.type.extra_json_schema or {}
            least = most = 0
            choices: tuple[str, ...] = ()
            if isinstance(kind, msgspec.inspect.IntType):
                assert kind.ge is not None and kind.le is not None, f"{field.name} has no range"
                least, most = kind.ge, kind.le
            elif isinstance(kind, msgspec.inspect.LiteralType):
                choices = get_args(Tier)
            yield Setting(
                section=section.name,
                key=field.name,
                kind=type(field.default),
                default=field.default,
                description=extra["description"],
                least=least,
                most=most,
                choices=choices,
            )


SETTINGS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _read_settings()}
SECTIONS: Final[Mapping[str, type[Struct]]] = {
    field.name: type(field.default) for field in msgspec.structs.fields(Config)
}


class Loaded(Struct, frozen=True):
    """The effective settings, and the origin of each value."""

    config: Config
    origins: Mapping[str, str]


def load(
    path: str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Loaded:
    """Combine defaults, file, environment and flags.

    Without a path, `duetime.toml` in the current folder is read if it exists; a given path must exist.
    `flags` are `{"section.key": value}`; `None` means that the flag was not given.
    """
    values = {name: setting.default for name, setting in SETTINGS.items()}
    origins = dict.fromkeys(SETTINGS, DEFAULT_ORIGIN)
    layers = (
        _from_file(path),
        _from_environment(os.environ if environ is None else environ),
        _from_flags(flags or {}),
    )
    for layer in layers:
        for name, value, origin in layer:
            SETTINGS[name].check(value, origin)
            values[name], origins[name] = value, origin
    return Loaded(_build(values), origins)


def _build(values: Mapping[str, object]) -> Config:
    sections: dict[str, Any] = {}
    for section, model in SECTIONS.items():
        names = [setting for setting in SETTINGS.values() if setting.section == section]
        sections[section] = model(**{setting.key: values[setting.name] for setting in names})
    return Config(**sections)


Given = tuple[str, object, str]  # the name of the setting, its value, its origin


def _from_file(path: str | Path | None) -> Iterator[Given]:
    if path is None and not Path(FILE_NAME).exists():
        return
    file = Path(path or FILE_NAME)
    try:
        tables = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise _bad(f"{file} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # not TOML, or not UTF-8
        raise _bad(f"{file} is not a TOML file: {error}.") from error
    for section, table in tables.items():
        if section not in SECTIONS:
            raise _unknown(section if not isinstance(table, dict) else f"[{section}]", section, str(file))
        if not isinstance(table, dict):
            raise _bad(f"{section} is {table!r} (from {file}), but must be a table: [{section}].")
        for key, value in table.items():
            name = f"{section}.{key}"
            if name not in SETTINGS:
                raise _unknown(name, name, str(file))
            yield name, value, str(file)


def _from_environment(environ: Mapping[str, str]) -> Iterator[Given]:
    for variable, text in sorted(environ.items()):
        # Without the double underscore, it belongs to another program, or is the default of a flag.
        if not variable.startswith(ENVIRONMENT_PREFIX) or "__" not in variable:
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".", 1)
        if name not in SETTINGS:
            raise _unknown(variable, name, "the environment", as_variable=True)
        yield name, SETTINGS[name].parse(text), variable


def _from_flags(flags: Mapping[str, object]) -> Iterator[Given]:
    for name, value in flags.items():
        if name not in SETTINGS:
            raise _unknown(name, name, "a flag")
        if value is not None:
            yield name, value, "flag"


def _unknown(shown: str, name: str, origin: str, *, as_variable: bool = False) -> BadConfig:
    """The error for an unknown name, with the nearest known name."""
    section, _, key = name.partition(".")
    by_key = {setting.key: setting.name for setting in SETTINGS.values()}
    nearest: str | None = None
    if key and (close := difflib.get_close_matches(name, SETTINGS, n=1, cutoff=0.75)):
        nearest = close[0]
    elif close := difflib.get_close_matches(key or section, by_key, n=1, cutoff=0.75):
        nearest = by_key[close[0]]
    elif not key and (close := difflib.get_close_matches(section, SECTIONS, n=1)):
        nearest = f"[{close[0]}]"
    if nearest and as_variable:
        nearest = SETTINGS[nearest].variable
    advice = f"Did you mean {nearest}?" if nearest else "There is no setting like it."
    return _bad(f"There is no setting {shown} (from {origin}). {advice}")


def client_url(environ: Mapping[str, str] | None = None) -> str:
    """The default server of the command line and of clients."""
    return (os.environ if environ is None else environ).get("DUETIME_URL", limits.URL_DEFAULT)


def client_token(environ: Mapping[str, str] | None = None) -> str | None:
    """The default token of the command line and of clients."""
    return (os.environ if environ is None else environ).get("DUETIME_TOKEN") or None


def state_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder for the history of the shell, in the user's state folder."""
    said = (os.environ if environ is None else environ).get("XDG_STATE_HOME", "")
    return (Path(said) if Path(said).is_absolute() else Path.home() / ".local" / "state") / "duetime"
