"""Formats intents and other responses of a server for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from duetime.cli.args.time_args import shown
from duetime.cli.ui import observed, output
from duetime.json_types import Json
from duetime.wire.intent import Intent, SharedFields
from duetime.wire.progress import Progress

COLUMNS = ("intent", "status", "time", "tier", "target", "tries", "late ms")
# The columns on a narrow terminal.
COLUMNS_LESS = ("intent", "status", "time", "target")
WIDE = 120


def target(intent: SharedFields) -> str:
    """The target in the notation of `duetime schedule`."""
    if intent.task is not None:
        queue = "" if intent.task.queue == "default" else f"@{intent.task.queue}"
        return f"task:{intent.task.name}{queue}"
    if intent.entity is not None:
        return f"entity:{intent.entity.type}/{intent.entity.id}/{intent.entity.message}"
    if intent.stream is not None:
        return f"stream:{intent.stream.name}"
    return intent.callback.url if intent.callback is not None else ""


def intents(found: Iterable[Intent], *, errors: bool = False) -> None:
    """A table of intents; of dead letters, with their errors."""
    columns = COLUMNS if output.width() >= WIDE else COLUMNS_LESS
    if errors:
        columns = (*columns, "error")
    output.table(columns, [row(intent, columns) for intent in found], right=("tries", "late ms"))


def row(intent: Intent, columns: tuple[str, ...] = COLUMNS) -> list[object]:
    """One intent in these columns. On a narrow terminal, its time has no milliseconds."""
    observed.add(intent.intent_id)
    at, error = shown(intent.execute_at), intent.last_error
    cells: dict[str, object] = {
        "intent": intent.intent_id,
        "status": intent.status,
        "time": at if columns[: len(COLUMNS)] == COLUMNS else f"{at[:10]} {at[11:19]}Z",
        "tier": intent.precision_tier,
        "target": target(intent),
        "tries": intent.attempts,
        "late ms": "" if intent.late_ms is None else intent.late_ms,
        "error": f"{error.kind}: {error.message}" if error is not None else "",
    }
    return [cells[name] for name in columns]


def intent(found: Intent) -> None:
    """All fields of an intent that have a value."""
    observed.add(found.intent_id)
    facts: Json = {"intent": found.intent_id, "status": found.status, "target": target(found)}
    known = ("intent_id", "status", "task", "entity", "stream", "redelivery", "last_error")
    for name, value in asdict(found).items():
        if name in known or value is None or value in ({}, [], (), ""):
            continue
        if name == "callback":
            value = {key: each for key, each in asdict(value).items() if each not in (None, {}, False, "")}
            if list(value) == ["url", "method"] and value["method"] == "POST":
                continue
        facts[words(name)] = value
    if not found.result_gone:
        del facts["result gone"]
    if found.progress is not None:
        facts["progress"] = progress(found.progress)
    retry = found.redelivery
    facts["retry"] = (
        f"up to {retry.max_attempts} attempts, {retry.backoff} from {retry.initial_delay_ms} ms"
        f" to {retry.max_delay_ms} ms{', with jitter' if retry.jitter else ''}"
    )
    if found.last_error is not None:
        error = found.last_error
        code = f" (HTTP {error.http_status})" if error.http_status else ""
        facts["last error"] = f"{error.kind}{code}: {error.message}"
        facts["last error at"] = error.at
    output.facts({name: cell(value) for name, value in facts.items()})


def progress(said: Progress) -> str:
    """The progress, such as 30 of 120 (25 %), with its note and time."""
    done, total = cell(said.done), said.total
    if total is not None:
        share = f" ({100 * said.done / total:.0f} %)" if total > 0 else ""
        done = f"{done} of {cell(total)}{share}"
    note = f", {said.note}" if said.note else ""
    return f"{done}{note}, at {shown(said.at)}"


def words(name: str) -> str:
    """The name of a field (late_ms, nextAttemptAt) as words. A constant is unchanged."""
    return " ".join(part if part.isupper() else _apart(part) for part in name.split())


def _apart(name: str) -> str:
    apart = "".join(f" {sign.lower()}" if sign.isupper() else sign for sign in name)
    return apart.replace("_", " ").strip()


def cell(value: Any) -> str:
    """A value for one cell: times as text, data as JSON."""
    if isinstance(value, str):
        return value
    if hasattr(value, "astimezone"):
        return shown(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    return "" if value is None else msgspec.json.encode(value).decode()


def document(value: Json, heading: str = "") -> None:
    """Any JSON object: plain values as lines, lists of objects as tables, objects below their names."""
    plain = {words(name): cell(each) for name, each in value.items() if not _large(each)}
    if heading:
        output.text("")
        output.title(heading)
    if plain:
        output.facts(plain)
    for name, each in value.items():
        if not _large(each):
            continue
        title = f"{heading}, {words(name)}" if heading else words(name)
        rows = _rows(each)
        if rows is None:
            document(each, title)
        else:
            output.text("")
            output.title(title)
            objects(rows)


def _rows(value: Any) -> list[Mapping[str, object]] | None:
    """A list of objects, or an object of objects by name, as rows of a table."""
    if isinstance(value, list):
        return value
    if len(value) > 1 and all(isinstance(each, Mapping) and each for each in value.values()):
        return [{"name": name, **each} for name, each in value.items()]
    return None


def _large(value: object) -> bool:
    if isinstance(value, Mapping):
        return bool(value)
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def objects(rows: Sequence[Mapping[str, object]]) -> None:
    """A table with the fields of its rows as columns."""
    flat = [dict(_flat(row)) for row in rows]
    columns = list(dict.fromkeys(name for row in flat for name in row))
    numbers = [name for name in columns if all(isinstance(row.get(name), int | float | None) for row in flat)]
    cells = [[cell(row.get(name)) for name in columns] for row in flat]
    titles = {name: words(name) for name in columns}
    output.table(list(titles.values()), cells, right=[titles[name] for name in numbers])


def _flat(row: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, object]]:
    for name, value in row.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", value
