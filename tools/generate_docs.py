"""Generates pages of docs/ from the code, so that they are always correct.

`make docs` writes them; tests/tidy/test_docs.py fails if a page is not current. To add a page, write a
function that returns its text, and add it to `PAGES`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from duetime import config, errors
from duetime.cli.args import options
from duetime.cli.commands.config import shown
from duetime.protocol.intent import FINAL, Status
from duetime.protocol.transitions import TRANSITIONS
from duetime.v1.intents_pb2 import NewIntent as NewIntentMessage
from duetime.wire.declarations import description, fields_of
from duetime.wire.intent import Intent, NewIntent, PatchIntent, PlannedIntent, ReviveIntent
from duetime.wire.names import short
from tools import dashboard, server_pages
from tools.generate_options import GIVEN
from tools.page import page, row

DOCS: Final = Path(__file__).parent.parent / "docs"


CONFIGURATION: Final = """\
# Configuration

Later sources override earlier ones: the defaults, `duetime.toml` in the current folder (or the file in
`--config`), the environment, flags. `duetime config show` prints every value and its source;
`duetime config check FILE` checks a file. An unknown name is an error that shows the nearest known name. A
value with a wrong type or out of its range is an error too.

```toml
[log]
flush_ms = 200
```

is the same as `DUETIME_LOG__FLUSH_MS=200`, and in code as `Config(log=LogSettings(flush_ms=200))` of
`duetime.config`. Units are part of the names."""

ERRORS: Final = """\
# Errors

All errors of Duetime are subclasses of `duetime.errors.DuetimeError`. They have a `code`, an HTTP `status`,
`retryable` (whether the same request may succeed later), and a `hint`. The base class shows what must happen
next. `Refused`: the caller must change the request. `Unavailable`: the caller can send the same request again
later. `Fatal`: an operator must find the cause.

Every class has its own code: the HTTP status and two digits. A code never changes and is never used for
another class. The Python client chooses the class by the code alone.

A newer server may send a code that your client does not know. Fall back on the HTTP status, as the Python
client does: it raises `Unavailable` for 429, 502, 503 and 504, `Refused` for every other status from 300 to
499, and `DuetimeError` for the rest. The exception keeps the server's `code`, `status`, `retryable` and hint.

| code | status | error | is a | try again | what it means | what to do |
|---|---|---|---|---|---|---|"""

STATES: Final = """\
# States

The states of an intent, and all transitions between them. Generated from the table `TRANSITIONS` in
`duetime.protocol.transitions`. The engine uses the same table: no other transition is possible."""

# The meaning of each state.
MEANINGS: Final = {
    Status.SCHEDULED: "It waits for its time, or for its next attempt.",
    Status.DUE: "It is due and waits in its lane for delivery.",
    Status.DISPATCHING: "It is delivered and running.",
    Status.BLOCKED: "It waits for the intents named in `after`.",
    Status.ACKED: "It succeeded; its result is stored.",
    Status.DEAD_LETTERED: "It finally failed; `last_error` has the reason, and it can be revived.",
    Status.EXPIRED: "Its deadline passed before it could be delivered.",
    Status.CANCELED: "It was cancelled.",
}
# How a new intent begins.
BEGINNINGS: Final = {
    Status.SCHEDULED: "accepted",
    Status.BLOCKED: "accepted, with other intents to wait for",
}


def configuration_page() -> str:
    """Every setting, by section."""
    lines = [CONFIGURATION]
    for section, model in config.SECTIONS.items():
        lines += ["", f"## [{section}]", "", (model.__doc__ or "").strip(), ""]
        lines += ["| setting | default | must be | meaning |", "|---|---|---|---|"]
        for setting in config.SETTINGS.values():
            if setting.section == section:
                default = f"`{shown(setting.default)}`"
                lines.append(row(f"`{setting.key}`", default, setting.expected, setting.description))
    return page(lines)


def errors_page() -> str:
    """Every error, by code."""
    lines = [ERRORS]
    for error in sorted(errors.EVERY, key=lambda error: error.code):
        parent = error.__bases__[0].__name__
        again = "yes" if error.retryable else "no"
        name = f"`{error.__name__}`"
        lines.append(row(error.code, error.status, name, f"`{parent}`", again, error.title(), error.hint))
    return page(lines)


def states_page() -> str:
    """Every state and every move, as a diagram and as tables."""
    lines = [STATES, "", "```mermaid", "stateDiagram-v2"]
    lines += [f"    [*] --> {new.name}: {reason}" for new, reason in BEGINNINGS.items()]
    for old, ways in TRANSITIONS.items():
        # In a diagram a second colon would end the label.
        lines += [f"    {old.name} --> {new.name}: {why.replace(': ', ' - ')}" for new, why in ways.items()]
    lines += [f"    {status.name} --> [*]" for status, ways in TRANSITIONS.items() if not ways]
    lines += ["```", "", "| state | final | means |", "|---|---|---|"]
    for status in Status:
        final = "no"
        if status in FINAL:
            final = "until it is revived" if TRANSITIONS[status] else "yes"
        lines.append(row(f"`{status.name}`", final, MEANINGS[status]))
    lines += ["", "| from | to | when |", "|---|---|---|"]
    for old, ways in TRANSITIONS.items():
        lines += [row(f"`{old.name}`", f"`{new.name}`", reason) for new, reason in ways.items()]
    return page(lines)


FIELDS: Final = """\
# Fields of an intent

A field has the same meaning in HTTP, gRPC, Python and the command line. HTTP and gRPC have long names;
Python and the command line have short ones, and their durations have units (`lease="30s"`,
`--lease 30s`). Every field can be sent with a new intent, also with a member of a group.

*schedule*: also in the intent of a schedule. *patch*: can be changed while the intent waits. *revive*: can be
changed when a dead letter is revived. *shown*: part of the intent that `GET /v1/intents/{id}`,
`handle.view()` and `app.find()` return.
"""


def fields_page() -> str:
    kinds = (
        ("schedule", PlannedIntent),
        ("patch", PatchIntent),
        ("revive", ReviveIntent),
        ("shown", Intent),
    )
    lines = [FIELDS, row("HTTP", "gRPC", "Python", "command line", "meaning", "also"), row(*["---"] * 6)]
    by_field: dict[str, list[str]] = {}
    for option in (*options.NEW, *options.CALLBACK):
        by_field.setdefault(option.field, []).append(f"`{option.flags[0]}`")
    messages = {field.name for field in NewIntentMessage.DESCRIPTOR.fields}
    for field in fields_of(NewIntent):
        name = field.name
        python = "the call" if name in GIVEN else f"`{short(name)}`"
        command = "`TARGET`" if name in ("task", "entity", "stream") else ", ".join(by_field[name])
        if name == "callback":
            command = f"`TARGET`, {command}"
        lines.append(
            row(
                f"`{field.encode_name}`",
                f"`{name if name in messages else f'{name}_ms'}`",
                python,
                command,
                description(field.type),
                ", ".join(kind for kind, struct in kinds if name in struct.__struct_fields__),
            )
        )
    return page(lines)


# The page, below docs/, and the function that writes it.
PAGES: Final[dict[str, Callable[[], str]]] = {
    "reference/configuration.md": configuration_page,
    "reference/errors.md": errors_page,
    "reference/fields.md": fields_page,
    "reference/states.md": states_page,
    "reference/http.md": server_pages.http_page,
    "reference/metrics.md": server_pages.metrics_page,
    "reference/anomalies.md": server_pages.anomalies_page,
    "reference/cli.md": server_pages.cli_page,
}


def main() -> None:
    """Write every page that is not current, and the dashboard, and say which."""
    files = {DOCS / name: write for name, write in PAGES.items()} | {dashboard.FILE: dashboard.text}
    for file, write in files.items():
        text = write()
        if file.exists() and file.read_text("utf-8") == text:
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        sys.stdout.write(f"wrote {file.relative_to(DOCS.parent)}\n")


if __name__ == "__main__":
    main()
