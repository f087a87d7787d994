"""The options of an intent on the command line, generated from the declarations of `duetime.wire`.

Every field of a Struct becomes an option, with its description as help. Fields with parts (a webhook, the
retry policy, a unique key) become several options. Values are more flexible than in JSON: durations have
units, times may be words, constants may be in upper or lower case.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import msgspec.inspect as types
import typer
from msgspec import Struct

from duetime.cli.args import parameters, time_args
from duetime.cli.args.parameters import Command, replaced
from duetime.clock import SystemClock
from duetime.errors import InvalidField
from duetime.json_types import Json
from duetime.timefmt import moment_of
from duetime.wire.declarations import description, fields_of, parts
from duetime.wire.intent import (
    Callback,
    NewIntent,
    PatchIntent,
    PlannedIntent,
    Redelivery,
    ReviveIntent,
)
from duetime.wire.names import flag
from duetime.wire.schedule import NewSchedule

WHEN: Final = "When"
RETRY: Final = "Retries and timeouts"
HOOK: Final = "Webhooks"
MORE: Final = "More"
RULE: Final = "Recurrence"

_PANELS: Final = {
    **dict.fromkeys(("payload", "intent_id", "idempotency_key", "tags"), None),
    **dict.fromkeys(
        (
            "delay_ms",
            "execute_at",
            "deadline",
            "expires_ms",
            "precision_tier",
            "slo",
            "priority",
            "after",
            "after_on",
            "after_delay_ms",
            "first_argument",
        ),
        WHEN,
    ),
    **dict.fromkeys(
        ("redelivery", "timeout_ms", "lease_ms", "result_ttl_ms", "expired_action", "guarantee"), RETRY
    ),
}
# Help texts for options that accept more than the declaration.
_HELP: Final = {
    "payload": "Payload: JSON, a file, or stdin (-).",
    "delay_ms": 'Delay: 30s, 1h30m, "2 d", or seconds.',
    "execute_at": 'Time: 2030-01-31T09:00+01:00, "tomorrow 9:00 Europe/Paris", "friday 17:30", "18:00".',
    "deadline": "Do not run after this: a time, or a duration after the intent's own time.",
    "after": "Dependency: wait for this intent; may be repeated.",
    "tags": "Tag, to find the intent later; may be repeated.",
    "headers": "Metadata for the function that runs the intent; may be repeated.",
    "limits": "Limit by a key: starts per period, concurrent runs, or both; may be repeated.",
    "unique": "If an intent with this key is active, print its id instead of creating one.",
}
_METAVARS: Final = {
    "payload": "JSON|@FILE|-",
    "deadline": "TIME|SPAN",
    "tags": "K=V",
    "headers": "K=V",
    "limits": "KEY=RATE|KEY=N|KEY=RATE,N",
    "priority": "SECONDS|HIGH|LOW",
    "unique": "KEY",
    "slo": "SPAN",
    "execute_at": "TIME",
    "precision_tier": "TIER",
}

Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="An http(s) address, task:NAME\\[@QUEUE], stream:NAME, or entity:TYPE/ID/MESSAGE.",
    ),
]
Given = Mapping[str, Any]
"""The options that were given, by the name of their parameter."""


def option(*names: str, shown: str | None = None, said: str, group: str | None = None, **more: Any) -> Any:
    """An option with its help, in a group."""
    return typer.Option(*names, metavar=shown, help=said, rich_help_panel=group, show_default=False, **more)


class Option(Struct, frozen=True):
    """One option: the parameter of the command, and the field that it sets."""

    name: str
    flags: tuple[str, ...]
    kind: Any
    metavar: str | None
    help: str
    panel: str | None
    read: Callable[[Any], Any]
    field: str
    part: str | None = None
    """The part of the field that it sets, if the field has parts."""

    def parameter(self) -> inspect.Parameter:
        shown = option(*self.flags, shown=self.metavar, said=self.help, group=self.panel)
        if self.kind is bool:
            return parameters.option(self.name, Annotated[bool, shown], False)
        return parameters.option(self.name, Annotated[self.kind | None, shown])


def with_options(*groups: Sequence[Option]) -> Callable[[Command], Command]:
    """Gives a command these options; it gets them as `given`."""
    options = [option.parameter() for group in groups for option in group]
    return lambda command: replaced(command, "given", options, dict)


def fields(options: Sequence[Option], given: Given) -> Json:
    """The fields of a request that these options set."""
    found: Json = {}
    for each in options:
        value = given.get(each.name)
        if value is None or value is False or value == []:
            continue
        read = each.read(value)
        if each.part is None:
            found[each.field] = read
        else:
            found.setdefault(each.field, {})[each.part] = read
    return found


# Reading declarations.


def _options(struct: type[Struct], names: Sequence[str] | None = None) -> Iterator[Option]:
    for field in fields_of(struct):
        if names is not None and field.name not in names:
            continue
        if field.name == "redelivery":
            yield from _RETRIES
        elif field.name == "unique":
            yield from _unique(field)
        elif field.name not in _BY_TARGET:
            yield _plain(field)


def _plain(field: types.Field) -> Option:
    name, kind = field.name, _bare(field.type)
    flags: tuple[str, ...] = (flag(name),)
    value: Any = str
    metavar: str | None = _metavar(name)
    read: Callable[[Any], Any] = _as_is
    if name == "payload":
        flags, read = ("--payload", "-p"), lambda text: read_json(text, "--payload")
    elif name == "tags":
        flags, value, read = ("--tag",), list[str], tags
    elif name == "headers":  # --header is for the headers of a webhook's request
        flags, value, read = ("--meta",), list[str], lambda given: tags(given, "--meta")
    elif name == "limits":
        flags, value, read = ("--limit",), list[str], lambda texts: [_limit(text) for text in texts]
    elif name == "priority":
        read = _priority
    elif name == "slo":
        read = _slo
    elif name == "precision_tier":
        read = str.upper
    elif isinstance(kind, types.LiteralType):
        metavar, read = "|".join(map(str, kind.values)), _constant(kind.values)
    elif isinstance(kind, types.ListType):
        value, metavar = list[str], "DATE" if name == "skip" else "ID"
    elif _is_time(kind):
        metavar, read = metavar or "TIME", _moment
    elif isinstance(kind, types.IntType):
        value, metavar, read = (str, "SPAN", time_args.length) if name.endswith("_ms") else (int, "N", _as_is)
    elif isinstance(kind, types.BoolType):
        value, metavar = bool, None
    help = _HELP.get(name) or description(field.type)
    return Option(_parameter(flags[0]), flags, value, metavar, help, _PANELS.get(name, MORE), read, name)


def _part(of: str, struct: type[Struct], part: str, name: str, panel: str, **more: Any) -> Option:
    """The option for one part of a field."""
    field = next(each for each in fields_of(struct) if each.name == part)
    plain = _plain(field)
    kind, read, metavar = plain.kind, more.get("read", plain.read), more.get("metavar", plain.metavar)
    flags = (f"--{name}", *more.get("flags", ()))
    help = more.get("help") or plain.help
    return Option(_parameter(flags[0]), flags, more.get("kind", kind), metavar, help, panel, read, of, part)


def _unique(field: types.Field) -> Iterator[Option]:
    yield Option("unique", ("--unique",), str, "KEY", _HELP["unique"], MORE, _as_is, "unique", "key")
    help = "How long the key is held: until the intent starts, until it ends, or for a time."
    yield Option(
        "unique_until", ("--unique-until",), str, "start|end|SPAN", help, MORE, _as_is, "unique", "until"
    )


def _bare(kind: types.Type) -> types.Type:
    """A type without its description, and without None."""
    kinds = [part for part in parts(kind) if not isinstance(part, types.NoneType)]
    return kinds[0] if len(kinds) == 1 else types.UnionType(tuple(kinds))


def _is_time(kind: types.Type) -> bool:
    return isinstance(kind, types.UnionType) and {types.StrType, types.FloatType} <= set(
        map(type, kind.types)
    )


def _metavar(name: str) -> str:
    return _METAVARS.get(name) or flag(name).rpartition("-")[2].upper()


def _parameter(flag: str) -> str:
    name = flag.removeprefix("--").replace("-", "_")
    return "delay" if name == "in" else name


# Reading values.


def _as_is(value: Any) -> Any:
    return value


def _constant(values: Sequence[object]) -> Callable[[str], str]:
    lower = any(str(each).islower() for each in values)

    def read(text: str) -> str:
        return text.lower() if lower else text.upper().replace("-", "_")

    return read


def _moment(text: str) -> Any:
    return moment_of(time_args.moment(text, SystemClock().now_ms()))


def _slo(text: str) -> dict[str, int]:
    return {"max_tardiness_ms": time_args.length(text)}


def _priority(text: str) -> int | str:
    return int(text) if text.lstrip("+-").isdecimal() else text.upper()


def tags(given: Sequence[str], option: str = "--tag") -> dict[str, str]:
    """`K=V` as a mapping."""
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"{each!r} does not have the form name=value", param_hint=option)
        found[name] = value
    return found


def _limit(text: str) -> Json:
    """`KEY=20/s`, `KEY=3` or `KEY=20/s,3` as a limit."""
    key, equals, caps = text.rpartition("=")
    found: Json = {"key": key}
    for cap in caps.split(","):
        if "/" in cap:
            found["rate"] = cap.strip()
        elif cap.strip().isdecimal():
            found["concurrency"] = int(cap)
        else:
            equals = ""
    if not (key and equals):
        raise typer.BadParameter(
            f"{text!r} is not a limit: write KEY=20/s, KEY=3 or KEY=20/s,3", param_hint="--limit"
        )
    return found


def _headers(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, colon, value = text.partition(":")
        if not (name.strip() and colon):
            raise typer.BadParameter(f"{text!r} does not have the form Name: value", param_hint="--header")
        found[name.strip()] = value.strip()
    return found


def read_json(text: str, option: str) -> Any:
    """JSON as given, from `@FILE`, or from stdin for `-`."""
    try:
        if text == "-":
            written = sys.stdin.buffer.read()
        elif text.startswith("@"):
            written = Path(text[1:]).read_bytes()
        else:
            written = text.encode()
        return msgspec.json.decode(written)
    except OSError as error:
        raise typer.BadParameter(f"{text[1:]} cannot be read: {error.strerror}", param_hint=option) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = f"it is not JSON: {error}. Quote text as JSON: '\"text\"'"
        raise typer.BadParameter(reason, param_hint=option) from None


# The options of commands.

_BY_TARGET: Final = ("callback", "task", "entity", "stream")
_RETRIES: Final = (
    _part("redelivery", Redelivery, "max_attempts", "attempts", RETRY, metavar="N"),
    _part("redelivery", Redelivery, "initial_delay_ms", "retry-delay", RETRY),
    _part("redelivery", Redelivery, "max_delay_ms", "retry-max-delay", RETRY),
    _part(
        "redelivery", Redelivery, "multiplier", "retry-multiplier", RETRY, metavar="X", kind=float,
        read=_as_is,
    ),
    _part("redelivery", Redelivery, "backoff", "retry-backoff", RETRY),
    _part(
        "redelivery", Redelivery, "jitter", "no-retry-jitter", RETRY, read=lambda given: False,
        help="Keep the delays between attempts exact.",
    ),
)  # fmt: skip
CALLBACK: Final = (
    _part("callback", Callback, "method", "method", HOOK, metavar="METHOD", read=str.upper),
    _part(
        "callback", Callback, "headers", "header", HOOK, metavar="NAME: VALUE", kind=list[str],
        read=_headers, flags=("-H",), help="HTTP header of the webhook; may be repeated.",
    ),
    _part(
        "callback", Callback, "body", "body", HOOK, metavar="JSON|@FILE|-", kind=str,
        read=lambda text: read_json(text, "--body"),
    ),
    _part("callback", Callback, "batch", "batch", HOOK),
    _part("callback", Callback, "parents", "parents", HOOK),
    _part("callback", Callback, "on_end", "on-end", HOOK, metavar="URL"),
)  # fmt: skip
_FIRST: Final = ("delay_ms", "execute_at", "deadline", "payload", "intent_id", "idempotency_key", "tags")
NEW: Final = (
    *_options(NewIntent, _FIRST),
    *_options(NewIntent, [name for name in NewIntent.__struct_fields__ if name not in _FIRST]),
)
PLANNED: Final = tuple(_options(PlannedIntent))
_DELAY: Final = tuple(_options(NewIntent, ["delay_ms"]))
PATCH: Final = (*_DELAY, *_options(PatchIntent))
_URL: Final = Option(
    "callback", ("--callback",), str, "URL", "Send to this webhook instead.", HOOK, _as_is, "callback", "url"
)
REVIVE: Final = (*_DELAY, *_options(ReviveIntent), _URL, *CALLBACK)
RECURRENCE: Final = tuple(
    Option(each.name, each.flags, each.kind, each.metavar, each.help, RULE, each.read, each.field)
    for each in _options(
        NewSchedule, [name for name in NewSchedule.__struct_fields__ if name not in ("intent", "source")]
    )
)


def target_of(text: str, given: Given) -> Json:
    """The target of a text, with the options of a webhook."""
    kind, _, name = text.partition(":")
    callback = fields(CALLBACK, given).get("callback", {})
    if kind in ("http", "https"):
        return {"callback": {"url": text, **callback}}
    if callback:
        raise typer.BadParameter("--method, --header, --body and --batch are for webhooks.")
    if kind == "task" and name:
        task, at, queue = name.rpartition("@")
        return {"task": {"name": task, "queue": queue} if at else {"name": name}}
    if kind == "stream" and name:
        return {"stream": {"name": name}}
    parts = name.split("/")
    if kind == "entity" and len(parts) >= 3 and all(parts):
        return {"entity": {"type": parts[0], "id": "/".join(parts[1:-1]), "message": parts[-1]}}
    raise typer.BadParameter(
        f"{text!r} is not a target. Use https://..., task:NAME[@QUEUE], stream:NAME, entity:TYPE/ID/MESSAGE",
        param_hint="TARGET",
    )


def new_fields(given: Given) -> Json:
    """The fields of a new intent, except its target. Without a time it is due now."""
    at, delay, deadline = given.get("at"), given.get("delay"), given.get("deadline")
    if at is not None and delay is not None:
        raise typer.BadParameter("use only one of --in and --at")
    found = planned_fields(given, NEW, skip=("deadline",))
    now_ms = SystemClock().now_ms()
    if at is None:
        found.setdefault("delay_ms", 0)  # relative to the server's clock
    if deadline is not None:
        own_ms = now_ms + found["delay_ms"] if at is None else time_args.moment(at, now_ms)
        found["deadline"] = moment_of(_deadline_ms(deadline, own_ms, now_ms))
    return found


def planned_fields(given: Given, options: Sequence[Option] = PLANNED, skip: Sequence[str] = ()) -> Json:
    """The fields of an intent that are options."""
    found = fields([each for each in options if each.field not in skip], given)
    policy = found.get("redelivery", {})
    if "initial_delay_ms" in policy:  # a first delay above the default maximum raises the maximum
        policy.setdefault("max_delay_ms", max(policy["initial_delay_ms"], Redelivery().max_delay_ms))
    unique = found.get("unique")
    if unique is not None:
        found["unique"] = _unique_key(unique)
    return found


def changed_fields(given: Given, options: Sequence[Option]) -> Json:
    """The changed fields of an intent. `--deadline none` removes the deadline."""
    delay, at, deadline = given.get("delay"), given.get("at"), given.get("deadline")
    if at is not None and delay is not None:
        raise typer.BadParameter("use only one of --in and --at")
    found = planned_fields(given, options, skip=("deadline", "delay_ms"))
    if "url" not in found.get("callback", {"url": ""}):
        raise typer.BadParameter("--method, --header, --body and --batch require --callback.")
    now_ms = SystemClock().now_ms()
    if delay is not None:
        found["execute_at"] = moment_of(now_ms + time_args.length(delay))
    if deadline is not None:
        none = deadline.lower() == "none"
        found["deadline"] = None if none else moment_of(_deadline_ms(deadline, now_ms, now_ms))
    return found


def _unique_key(said: Json) -> Json:
    until = said.pop("until", None)
    if "key" not in said:
        raise typer.BadParameter("--unique-until requires --unique.")
    if until is None:
        return said
    if until.lower() in ("start", "end"):
        return said | {"until": until.upper()}
    return said | {"until": "TIME", "for_ms": time_args.length(until)}


def _deadline_ms(text: str, own_ms: int, now_ms: int) -> int:
    try:
        return own_ms + time_args.length(text)
    except InvalidField:
        return time_args.moment(text, now_ms)
