"""`duetime log`: inspects a data folder, even while an engine runs. It locks and changes nothing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec import Struct
from msgspec.structs import replace

from duetime import wiring
from duetime.cli.ui import output
from duetime.errors import BadConfig, Damaged
from duetime.json_types import Json
from duetime.log import inspect
from duetime.protocol import record as codec
from duetime.protocol.command import Command, Settle, Submit
from duetime.timefmt import iso
from duetime.wire.names import camel

app = typer.Typer(help="Inspect a log: segments, records, damage.", no_args_is_help=True)

DataOption = Annotated[Path, typer.Option("--data", metavar="DIR", help="The data folder.")]
_DATA = Path("duetime-data")


class SegmentLine(Struct, rename="camel"):
    """One segment, for the output."""

    file: str
    first: int
    bytes: int
    frames: int
    sealed: bool
    records: int = 0
    from_ms: int | None = None
    to_ms: int | None = None


@app.command()
def segments(data: DataOption = _DATA, as_json: output.JsonFlag = False) -> None:
    """List the segments with first position, contents and time range."""
    folder = _log_folder(data)
    found = inspect.segments(folder)
    lines = [SegmentLine(info.file, info.first, info.bytes, info.frames, info.sealed) for info in found]
    damage = _fill(lines, folder, found[-1].last if found else 0)
    if as_json:
        output.json([_as_shown(line) for line in lines])
    else:
        columns = ("segment", "first position", "bytes", "frames", "records", "from", "to")
        rows = [
            (s.file, s.first, s.bytes, s.frames, s.records, _moment(s.from_ms), _moment(s.to_ms))
            for s in lines
        ]
        output.table(columns, rows, right=columns[1:5])
    if damage is not None:
        raise damage


def _fill(lines: list[SegmentLine], folder: Path, until: int) -> Damaged | None:
    """Count the records and find their times. Returns the damage at which it stopped, if any."""
    firsts = [line.first for line in lines]
    try:
        for position, frame in inspect.scan(folder):
            place = bisect_right(firsts, position) - 1
            if place < 0 or position >= until:
                continue  # a running engine has trimmed or written it in the meantime
            line = lines[place]
            line.records += frame.count
            line.from_ms = frame.at_ms if line.from_ms is None else min(line.from_ms, frame.at_ms)
            line.to_ms = frame.at_ms if line.to_ms is None else max(line.to_ms, frame.at_ms)
    except Damaged as damage:
        return damage
    return None


@app.command()
def dump(
    data: DataOption = _DATA,
    start: Annotated[int, typer.Option("--from", metavar="POSITION", help="Start at this position.")] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of records.")] = None,
    intent: Annotated[str | None, typer.Option(metavar="ID", help="Only records of this intent.")] = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Print the records, one per line: position, time, command, fields. `--json` prints NDJSON."""
    for count, (position, index, at_ms, command) in enumerate(_records(_log_folder(data), start, intent)):
        if count == limit:
            break
        name = str(command.__struct_config__.tag)
        fields = readable(command)
        if as_json:
            line = {"position": position, "index": index, "at": _moment(at_ms), "command": name, **fields}
            output.json_line(line)
        else:
            body = msgspec.json.encode(fields).decode() if fields else ""
            output.text(f"{position}.{index}  {_moment(at_ms)}  {name}  {body}".rstrip())


def _records(folder: Path, start: int, intent: str | None) -> Iterator[tuple[int, int, int, Command]]:
    for position, frame in inspect.scan(folder):
        if position < start:
            continue
        try:
            commands = codec.decode(frame.body)
        except codec.Unreadable as error:
            raise Damaged(f"The records at position {position} cannot be read: {error}.") from error
        for index, command in enumerate(commands):
            found: Command | None = command if intent is None else _of(command, intent)
            if found is not None:
                yield position, index, frame.at_ms, found


def _of(command: Command, intent: str) -> Command | None:
    """The part of a command that concerns one intent."""
    if isinstance(command, Submit):
        items = [item for item in command.items if item.id == intent or intent in item.after]
        numbers = sorted({item.terms for item in items})
        mine = tuple(replace(item, terms=numbers.index(item.terms)) for item in items)
        return Submit(tuple(command.terms[number] for number in numbers), mine) if items else None
    if isinstance(command, Settle):
        settlements = tuple(each for each in command.settlements if each.id == intent)
        return Settle(settlements) if settlements else None
    return command if getattr(command, "id", None) == intent else None


@app.command()
def verify(data: DataOption = _DATA, as_json: output.JsonFlag = False) -> None:
    """Verify every byte of log and store, and the state they produce. Exit code 3 on damage."""
    _log_folder(data)
    report = wiring.verify(data)
    if as_json:
        output.json({"sound": not report.findings, **_as_shown(report)})
    else:
        for finding in report.findings:
            output.text(f"{finding.place}: {finding.what}")
        output.words(
            f"{report.frames} frames with {report.records} records and {report.rows} rows were read"
            + (f"; {report.replayed} records were replayed." if not report.findings else ".")
        )
        if not report.findings:
            output.words(f"No damage. Replay gives a valid state with {report.intents} intents.")
    if report.findings:
        number = len(report.findings)
        raise Damaged(f"{number} damaged place{'s' * (number > 1)} in {data}.", hint="Restore from a backup.")


def _log_folder(data: Path) -> Path:
    folder = data / wiring.LOG_FOLDER
    if not folder.is_dir():
        raise BadConfig(f"There is no log in {data}.", hint="Pass the data folder with --data DIR.")
    return folder


# Records as text.


def readable(value: Any) -> Any:
    """Fields by name, without defaults; enums by name; payloads as JSON."""
    if isinstance(value, Struct):
        return _fields(value)
    if isinstance(value, list | tuple):
        return [readable(each) for each in value]
    if isinstance(value, bytes):
        return _payload(value)
    return value.name if isinstance(value, Enum) else value


def _fields(value: Struct) -> Json:
    shown: Json = {}
    tag = value.__struct_config__.tag
    if tag is not None and not isinstance(value, Command):
        shown["type"] = tag
    for field in msgspec.structs.fields(value):
        found = getattr(value, field.name)
        if found == field.default and field.name != "terms":
            continue
        if found and (field.name.endswith("_at_ms") or field.name in ("deadline_ms", "not_before_ms")):
            shown[camel(field.name.removesuffix("_ms"))] = _moment(found)
        else:
            shown[camel(field.name)] = readable(found)
    return shown


def _payload(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {"hex": body.hex()}


def _as_shown(value: Any) -> Any:
    shown = msgspec.to_builtins(value)
    for name in ("fromMs", "toMs"):
        if name in shown:
            shown[name.removesuffix("Ms")] = _moment(shown.pop(name)) or None
    return shown


def _moment(at_ms: int | None) -> str:
    return "" if at_ms is None else iso(at_ms)
