"""Write the keyword options of Python from the declarations of `duetime.wire.intent`.

Type checkers need them as source: `client/app/options.py` for an App (short names, durations with units) and
`client/http/request_types.py` for the HTTP client (the names of the API). `make options` writes both; a test
compares them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec.inspect as types
from msgspec import Struct

from duetime.wire import intent as wire
from duetime.wire import lane, schedule
from duetime.wire.declarations import description, fields_of, removable
from duetime.wire.names import short
from duetime.wire.terms import OWN_SENT

_ROOT = Path(__file__).parent.parent / "src" / "duetime" / "client"
APP, HTTP = _ROOT / "app" / "options.py", _ROOT / "http" / "request_types.py"
_MADE = "Written by `make options`; do not edit."

# Fields that the call itself gives, and no option: what runs, with which arguments, in which group.
GIVEN = frozenset({"callback", "task", "entity", "stream", "payload", "group", "members", "first_argument"})
# Options of Python that a server decides by itself.
_ONLY_PYTHON = {"on_interrupt": ("str", "What happens to an interrupted attempt: RETRY or DEAD_LETTER.")}
_APP_TYPES = {
    "redelivery": "Retry",
    "unique": "Unique",
    "slo": "Delay",
    "after": "Iterable[Handle[Any] | str]",
    "limits": "Iterable[Limit | Mapping[str, object]]",
}


_SIMPLE = {types.StrType: "str", types.LiteralType: "str", types.FloatType: "float", types.BoolType: "bool"}


def app_options() -> str:
    """The module of an App's options."""
    lines = [
        f'"""The options of an intent in an App. {_MADE}"""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Iterable, Mapping, Sequence",
        "from datetime import date",
        "from typing import TYPE_CHECKING, Any, Final, TypedDict",
        "",
        "from msgspec import Struct",
        "",
        "from duetime.client.app.policies import Retry, Unique",
        "from duetime.client.app.times import Delay, Moment",
        "from duetime.wire.intent import Limit",
        "",
        "if TYPE_CHECKING:",
        "    from duetime.client.app.handle import Handle",
        "",
        "",
        "class OptionFields(TypedDict, total=False):",
        '    """The options as keywords. None: the default."""',
        "",
    ]
    options = list(_options())
    for name, kind, help in options:
        lines += [f"    {name}: {kind} | None", f'    """{help}"""']
    lines += [
        "",
        "",
        "class OptionValues(Struct, frozen=True, kw_only=True):",
        '    """The options as values."""',
        "",
    ]
    lines += [f"    {name}: {kind} | None = None" for name, kind, _ in options]
    own = [short(name) for name in OWN_SENT if name not in GIVEN]
    lines += ["", "", "# Options of one intent; the others make its terms, which many share."]
    lines += [
        "PER_INTENT: Final = frozenset(",
        "    {",
        *(f'        "{name}",' for name in own),
        "    }",
        ")",
    ]
    lines += _typed_dict(
        "Changes",
        "Changes of a waiting intent. Omitted fields stay; `deadline=None` removes the deadline.",
        [(short(name), kind, help) for name, kind, help in _fields(wire.PatchIntent, app=True)],
    )
    lines += _typed_dict(
        "RuleFields",
        "When a schedule ticks, and how ticks are treated that overlap or were missed.",
        [("id", "str", "Schedule id (default: the name of the function).")]
        + [
            (short(name), kind, help)
            for name, kind, help in _fields(schedule.NewSchedule, app=True)
            if name not in ("intent", "source")
        ],
    )
    return _formatted(lines)


def http_requests() -> str:
    """The module of the HTTP client's keywords."""
    parts = [
        "Callback",
        "EntityTarget",
        "Limit",
        "Redelivery",
        "Slo",
        "StreamTarget",
        "TaskTarget",
        "UniqueKey",
    ]
    lines = [
        f'"""The fields of requests as keywords of the HTTP client. {_MADE}"""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import Mapping, Sequence",
        "from typing import TypedDict",
        "",
        "from duetime.client.app.times import Moment",
        f"from duetime.wire.intent import {', '.join(parts)}",
        "",
        "Fields = Mapping[str, object]",
        '"""A part as a mapping, in the names of Python or of the API."""',
    ]
    for name, struct in (
        ("PlannedIntent", wire.PlannedIntent),
        ("NewIntent", wire.NewIntent),
        ("Changes", wire.PatchIntent),
        ("Revival", wire.ReviveIntent),
        ("NewRule", schedule.NewSchedule),
        ("LaneChanges", lane.LanePatch),
    ):
        base = "PlannedIntent" if struct is wire.NewIntent else "TypedDict"
        known = wire.PlannedIntent.__struct_fields__ if struct is wire.NewIntent else ("intent",)
        fields = [each for each in _fields(struct, app=False) if each[0] not in known]
        lines += _typed_dict(name, (struct.__doc__ or "").strip(), fields, base)
    return _formatted(lines)


def _options() -> Iterator[tuple[str, str, str]]:
    found = {
        name: (short(name), kind, help)
        for name, kind, help in _fields(wire.NewIntent, app=True)
        if name not in GIVEN
    }
    first = ("intent_id", "execute_at", "delay_ms", "deadline")
    for name in (*first, *(name for name in found if name not in first)):
        yield found[name]
    for name, (kind, help) in _ONLY_PYTHON.items():
        yield name, kind, help


def _typed_dict(
    name: str, doc: str, fields: list[tuple[str, str, str]], base: str = "TypedDict"
) -> list[str]:
    lines = ["", "", f"class {name}({base}, total=False):", f'    """{doc}"""', ""]
    for field, kind, help in fields:
        lines += [f"    {field}: {kind}", f'    """{help}"""']
    return lines


def _fields(struct: type[Struct], *, app: bool) -> Iterator[tuple[str, str, str]]:
    for field in fields_of(struct):
        kind = (_APP_TYPES.get(field.name) if app else None) or _kind(field.name, field.type, app=app)
        yield field.name, f"{kind} | None" if removable(field) else kind, description(field.type)


def _kind(name: str, kind: types.Type, *, app: bool) -> str:
    """The type of a field for callers in Python."""
    if isinstance(kind, types.Metadata):
        return _kind(name, kind.type, app=app)
    if isinstance(kind, types.UnionType):
        parts = [part for part in kind.types if not isinstance(part, types.NoneType)]
        names = list(dict.fromkeys(_kind(name, part, app=app) for part in parts))
        return "Moment" if sorted(names) == ["float", "int", "str"] else " | ".join(names)
    if isinstance(kind, types.StructType):
        base = kind.cls.__mro__[1].__name__ if kind.cls.__name__.endswith("In") else kind.cls.__name__
        return f"{base} | Fields"
    if isinstance(kind, types.ListType):
        dates = " | date" if app and name == "skip" else ""
        return f"Sequence[{_kind(name, kind.item_type, app=app)}{dates}]"
    if isinstance(kind, types.DictType):
        return "Mapping[str, str]"
    if isinstance(kind, types.IntType):
        return "Delay" if app and name.endswith("_ms") else "int"
    simple = {
        types.StrType: "str",
        types.LiteralType: "str",
        types.FloatType: "float",
        types.BoolType: "bool",
    }
    return simple.get(type(kind), "object")


def _formatted(lines: list[str]) -> str:
    ruff = [sys.executable, "-m", "ruff"]
    text = "\n".join(lines) + "\n"
    for command in (["check", "--fix-only", "-q", "--select", "I"], ["format", "-q"]):
        run = [*ruff, *command, "--stdin-filename", str(APP), "-"]
        text = subprocess.run(run, input=text, capture_output=True, text=True, check=True).stdout
    return text


def main() -> None:
    for path, text in ((APP, app_options()), (HTTP, http_requests())):
        path.write_text(text)
        print(f"wrote {path.relative_to(_ROOT.parent.parent.parent)}")


if __name__ == "__main__":
    main()
