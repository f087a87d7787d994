"""Every setting: its name, type, default, range, and where its value came from.

Values are laid over each other: the defaults, then `duetime.toml`, then the environment
(`DUETIME_SECTION__KEY`), then flags. Nothing is guessed: a name nobody knows, a value of the wrong
type or out of its range is `BadConfig`, and the message says where the value stands. This is the only
module that reads the environment.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import msgspec.inspect
from msgspec import Meta, Struct

from duetime import limits
from duetime.errors import BadConfig

FILE_NAME: Final = "duetime.toml"
ENVIRONMENT_PREFIX: Final = "DUETIME_"
DEFAULT_ORIGIN: Final = "default"

Tier = Literal["ULTRA", "FAST", "HIGH", "STANDARD", "ECONOMY"]
assert get_args(Tier) == limits.TIER_NAMES, "the tiers have one list"

# Bounds that several settings share. A time beyond a hundred years is a mistake of units.
TIME_MS_MAX: Final = 100 * 365 * limits.DAY_MS
BYTES_MAX: Final = 2**50
COUNT_MAX: Final = 10**12


def _number(least: int, most: int, description: str) -> Meta:
    return Meta(ge=least, le=most, description=description)


def _permits(tier: str, window_ms: int) -> Meta:
    return _number(1, limits.PERMITS_MAX, f"Deliveries of tier {tier} ({window_ms} ms) at one time.")


class DataSettings(Struct, frozen=True, kw_only=True):
    """Where things are kept."""

    dir: Annotated[str, Meta(description="The data folder; the log and the store live in it.")] = (
        "duetime-data"
    )


class LogSettings(Struct, frozen=True, kw_only=True):
    """How the log is written, and how much of it is kept."""

    segment_bytes_max: Annotated[
        int, _number(2 * limits.FRAME_BYTES_MAX, 2**31, "A log file is closed at this size.")
    ] = limits.SEGMENT_BYTES_MAX
    history_bytes: Annotated[
        int, _number(0, BYTES_MAX, "Log kept below the checkpoint, so that the past can be read.")
    ] = limits.LOG_HISTORY_BYTES
    flush_ms: Annotated[
        int, _number(1, limits.MINUTE_MS, "An ASYNC write is synced within this: what power loss may cost.")
    ] = limits.FLUSH_MS
    batch_deferred_ms: Annotated[
        int, _number(1, limits.MINUTE_MS, "A BATCH_DEFERRED write is synced within this.")
    ] = limits.BATCH_DEFERRED_MS
    disk_reserve_bytes: Annotated[
        int, _number(0, BYTES_MAX, "Free disk kept back for accepted work; below it new work is refused.")
    ] = limits.DISK_RESERVE_BYTES


class StoreSettings(Struct, frozen=True, kw_only=True):
    """What is held in memory, and how often the rest is written down."""

    horizon_ms: Annotated[
        int, _number(1_000, limits.DAY_MS, "Intents due within this are held in memory, the rest on disk.")
    ] = limits.HORIZON_MS
    checkpoint_ms: Annotated[
        int, _number(100, limits.HOUR_MS, "The longest time between two checkpoints while there are changes.")
    ] = 5_000
    checkpoint_changes: Annotated[
        int, _number(1, 10_000_000, "A checkpoint comes earlier once it would free this many intents.")
    ] = 100_000


class IntentsSettings(Struct, frozen=True, kw_only=True):
    """What an intent gets when it does not say, and how long it is remembered."""

    default_tier: Annotated[Tier, Meta(description="The tier of an intent that names none.")] = "STANDARD"
    payload_bytes_max: Annotated[
        int, _number(1, limits.PAYLOAD_BYTES_MAX, "The largest payload accepted.")
    ] = limits.PAYLOAD_BYTES_MAX
    result_bytes_max: Annotated[int, _number(1, limits.RESULT_BYTES_MAX, "The largest result stored.")] = (
        limits.RESULT_BYTES_MAX
    )
    past_tolerance_ms: Annotated[
        int, _number(0, TIME_MS_MAX, "A time of execution this far in the past is still accepted.")
    ] = limits.PAST_TOLERANCE_MS
    key_window_ms: Annotated[
        int, _number(0, TIME_MS_MAX, "How long an idempotency key names its intent.")
    ] = limits.KEY_WINDOW_MS
    retention_ms: Annotated[int, _number(0, TIME_MS_MAX, "How long a finished intent can still be read.")] = (
        limits.RETENTION_MS
    )
    dead_letter_retention_ms: Annotated[
        int, _number(0, TIME_MS_MAX, "How long a dead letter can still be read and revived.")
    ] = limits.DEAD_LETTER_RETENTION_MS
    retention_count: Annotated[
        int, _number(0, COUNT_MAX, "Finished intents kept at most; the oldest go first.")
    ] = limits.RETENTION_COUNT


class LimitsSettings(Struct, frozen=True, kw_only=True):
    """When new work is refused, with a wait (429)."""

    pending_max: Annotated[int, _number(1, COUNT_MAX, "Unfinished intents at most.")] = limits.PENDING_MAX
    lane_pending_max: Annotated[int, _number(1, COUNT_MAX, "Unfinished intents at most in one lane.")] = (
        limits.LANE_PENDING_MAX
    )
    entity_pending_max: Annotated[int, _number(1, COUNT_MAX, "Waiting messages at most of one entity.")] = (
        limits.ENTITY_PENDING_MAX
    )
    entities_max: Annotated[int, _number(1, COUNT_MAX, "Entities at most that have waiting messages.")] = (
        limits.ENTITIES_MAX
    )
    lateness_guard: Annotated[
        bool, Meta(description="Refuse new work of a tier that cannot keep its lateness bound.")
    ] = False


class TiersSettings(Struct, frozen=True, kw_only=True):
    """How many deliveries each tier may have under way; idle permits are lent to higher tiers."""

    ultra: Annotated[int, _permits("ULTRA", 10)] = limits.TIER_PERMITS[0]
    fast: Annotated[int, _permits("FAST", 50)] = limits.TIER_PERMITS[1]
    high: Annotated[int, _permits("HIGH", 100)] = limits.TIER_PERMITS[2]
    standard: Annotated[int, _permits("STANDARD", 500)] = limits.TIER_PERMITS[3]
    economy: Annotated[int, _permits("ECONOMY", 1_000)] = limits.TIER_PERMITS[4]

    @property
    def permits(self) -> tuple[int, ...]:
        """In the order of `limits.TIER_NAMES`."""
        return (self.ultra, self.fast, self.high, self.standard, self.economy)


class EngineSettings(Struct, frozen=True, kw_only=True):
    """How this process runs its functions."""

    threads: Annotated[int, _number(1, 1_024, "Threads for tasks that are plain functions.")] = 16
    # Fixed, not counted: a program should not change its shape with the machine it is moved to.
    processes: Annotated[int, _number(0, 256, "Processes for tasks that ask for one; 0 allows none.")] = 2
    drain_ms: Annotated[
        int, _number(0, limits.DAY_MS, "How long stopping waits for deliveries under way.")
    ] = 30_000


class Config(Struct, frozen=True, kw_only=True):
    """All settings. `Config()` is the defaults; values given in code are checked like any other."""

    data: DataSettings = DataSettings()
    log: LogSettings = LogSettings()
    store: StoreSettings = StoreSettings()
    intents: IntentsSettings = IntentsSettings()
    limits: LimitsSettings = LimitsSettings()
    tiers: TiersSettings = TiersSettings()
    engine: EngineSettings = EngineSettings()

    def __post_init__(self) -> None:
        for setting in SETTINGS.values():
            setting.check(setting.value_in(self), "code")


class Setting(Struct, frozen=True, kw_only=True):
    """What is known of one setting, read off the model above."""

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
        return "a text that is not empty"

    def value_in(self, config: Config) -> Any:
        return getattr(getattr(config, self.section), self.key)

    def check(self, value: Any, origin: str) -> None:
        """Raise `BadConfig` unless the value has the right type and is in its range."""
        of_kind = type(value) is self.kind  # not isinstance: `threads = true` is a mistake
        if of_kind and self._in_range(value):
            return
        raise _bad(f"{self.name} is {value!r} (from {origin}), but must be {self.expected}.")

    def _in_range(self, value: Any) -> bool:
        if self.choices:
            return str(value) in self.choices
        if self.kind is int:
            return bool(self.least <= value <= self.most)
        return self.kind is bool or bool(value)

    def parse(self, text: str) -> object:
        """A value out of the environment, where everything is text. `check` judges what comes out."""
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
    """The settings in force, and for each the place its value came from."""

    config: Config
    origins: Mapping[str, str]


def load(
    path: str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Loaded:
    """Lay defaults, file, environment and flags over each other.

    Without a path, `duetime.toml` of the current folder is read if there is one; a path that is named
    must exist. `flags` are `{"section.key": value}`; `None` means the flag was not given.
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


def _build(values: Mapping[str, Any]) -> Config:
    sections: dict[str, Any] = {}
    for section, model in SECTIONS.items():
        names = [setting for setting in SETTINGS.values() if setting.section == section]
        sections[section] = model(**{setting.key: values[setting.name] for setting in names})
    return Config(**sections)


Given = tuple[str, Any, str]  # the setting's name, its value, where that came from


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
        # Without the double underscore it is another program's business, or a flag's default.
        if not variable.startswith(ENVIRONMENT_PREFIX) or "__" not in variable:
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".", 1)
        if name not in SETTINGS:
            raise _unknown(variable, name, "the environment", as_variable=True)
        yield name, SETTINGS[name].parse(text), variable


def _from_flags(flags: Mapping[str, Any]) -> Iterator[Given]:
    for name, value in flags.items():
        if name not in SETTINGS:
            raise _unknown(name, name, "a flag")
        if value is not None:
            yield name, value, "flag"


def _unknown(shown: str, name: str, origin: str, *, as_variable: bool = False) -> BadConfig:
    """The error for a name nobody knows, with the nearest one that is known."""
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
