"""The reference pages of the server: routes, metrics, anomalies, commands. Each is read off the code."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import typer

from duetime import serving
from duetime.api.http.openapi import document
from duetime.cli import main
from duetime.config import Config
from duetime.insight.metric_table import METRICS, Spec
from duetime.insight.rules import RULES
from duetime.insight.worker_metrics import WORKER_METRICS
from duetime.limits import GRPC_PORT, HTTP_PORT
from duetime.settings import DataSettings
from tools.page import page, row

HTTP: Final = f"""\
# HTTP routes

The routes of `duetime serve` on port {HTTP_PORT}. A running server documents every field, parameter and
example at `/docs`, and provides OpenAPI 3.1 at `/openapi.json`. [The server guide](../server.md) shows how
to use the routes. *needs* is the required role of a [token](../server.md#tokens). A server without tokens
listens on loopback only and allows every request. [Errors](errors.md) are `application/problem+json`. gRPC
is on port {GRPC_PORT}."""

METRICS_PAGE: Final = """\
# Metrics

`GET /metrics` returns Prometheus text, OpenMetrics or JSON, depending on `Accept`. If the server has
tokens, the request needs a token of any role. A histogram has `_bucket`, `_sum` and `_count`. The dashboard
and the alert rules in `deploy/` use these names; a test checks them.

Counters of intent transitions (submitted, completed, retried, dead, expired, canceled, revived) are stored
with the data and continue after a restart. All other counters start at zero at each start, as Prometheus
expects."""

WORKER_METRICS_TEXT: Final = """\
`duetime worker --metrics-port 9100` serves these for each worker process, on the next port for each further
process. An embedded `App(..., metrics=True)` has the metrics of a server: `app.metrics()` returns them as
plain values, and `duetime.contrib.prometheus` adds them to a registry of your own."""

ANOMALIES: Final = """\
# Anomalies

The anomalies that `GET /health` and `duetime health` report. Each report has a start time, figures, a
meaning and a remedy. An anomaly is reported after it has lasted for the time in *after*, and cleared after
it has been absent for the time in *until*. A `NOTE` does not change the status. One `DEGRADED` anomaly makes
the status DEGRADED. One `DOWN` anomaly makes the status DOWN and the HTTP status 503."""

CLI: Final = f"""\
# Commands

`duetime COMMAND --help` shows the same text, with defaults. Commands that use a server take its
address from `--url`, `DUETIME_URL` or http://localhost:{HTTP_PORT}, in this order, and the token from
`--token` or `DUETIME_TOKEN`. Data goes to stdout, messages go to stderr. `--json` prints JSON for
programs.

{main.EXIT_CODES}"""


def http_page() -> str:
    """Every route of a real server, from the document it gives out."""
    document = _document()
    lines = [HTTP]
    for tag in document["tags"]:
        lines += [
            "",
            f"## {tag['name']}",
            "",
            "| route | does | needs | may be refused with |",
            "|---|---|---|---|",
        ]
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if operation["tags"] == [tag["name"]]:
                    lines.append(_route(method, path, operation))
    return page(lines)


def _route(method: str, path: str, operation: dict[str, Any]) -> str:
    needs = operation["description"].rpartition("Needs ")[2].removesuffix(".")
    needs = needs.removesuffix(", if the server has tokens")
    needs = needs.replace("a token of the role ", "").replace("any token", "any role")
    needs = "nothing" if needs == "no token" else needs
    refused = ", ".join(status for status in operation["responses"] if status >= "400")
    return row(f"`{method.upper()} {path}`", operation["summary"], needs, refused)


def _document() -> dict[str, Any]:
    """What a server gives at `/openapi.json`."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Config(data=DataSettings(dir=str(Path(folder) / "data")))
        return document(serving.make(settings).router.routes)


def metrics_page() -> str:
    """Every metric, by kind."""
    lines = [METRICS_PAGE]
    for kind in dict.fromkeys(spec.kind for spec in METRICS):
        lines += ["", f"## {kind.capitalize()}s", "", *_table(spec for spec in METRICS if spec.kind == kind)]
    lines += ["", "## Workers", "", WORKER_METRICS_TEXT, "", *_table(WORKER_METRICS)]
    return page(lines)


def _table(specs: Iterable[Spec]) -> list[str]:
    lines = ["| metric | labels | meaning |", "|---|---|---|"]
    for spec in specs:
        labels = ", ".join(f"`{label}`" for label in spec.labels)
        lines.append(row(f"`{spec.name}`", labels, spec.help))
    return lines


def anomalies_page() -> str:
    """Every rule of the narrator, in the order in which they are told."""
    lines = [
        ANOMALIES,
        "",
        "| code | severity | means | what to do | after | until |",
        "|---|---|---|---|---|---|",
    ]
    for rule in RULES:
        spans = (_span(rule.after_ms), _span(rule.until_ms))
        lines.append(row(f"`{rule.code}`", rule.severity, rule.meaning, rule.advice, *spans))
    return page(lines)


def _span(ms: int) -> str:
    return f"{ms // 1000} s" if ms else "at once"


def cli_page() -> str:
    """Every command with its options."""
    # Any: which click Typer brings along, or has inside, is its own affair.
    root: Any = typer.main.get_command(main.build(main.COMMANDS))
    lines = [CLI, "", "| command | does |", "|---|---|"]
    lines += [
        row(f"[`duetime {name}`](#duetime-{name})", command.help) for name, command in main.COMMANDS.items()
    ]
    for name in main.COMMANDS:
        lines += _command(f"duetime {name}", root.commands[name], depth=2)
    return page(lines)


def _command(name: str, command: Any, depth: int) -> list[str]:
    lines = ["", f"{'#' * depth} {name}", "", *_told(command.help or "")]
    inner = getattr(command, "commands", {})
    for each in inner:
        lines += _command(f"{name} {each}", inner[each], depth + 1)
    if not inner:
        lines += ["", "| | |", "|---|---|"]
        lines += [row(f"`{_shown(each)}`", each.help or "") for each in command.params if not each.hidden]
    return lines


def _shown(parameter: Any) -> str:
    value = parameter.metavar or parameter.name.upper()
    if parameter.param_type_name == "argument":
        return str(value)
    names = ", ".join([*sorted(parameter.opts, key=len, reverse=True), *parameter.secondary_opts])
    return names if parameter.is_flag else f"{names} {value}"


def _told(help: str) -> list[str]:
    """A docstring as Markdown: its examples as code."""
    words, _, examples = help.partition("Examples:")
    lines = words.strip().split("\n")
    shown = [line.strip() for line in examples.split("\n") if line.strip()]
    return [*lines, "", "```console", *(f"$ {line}" for line in shown), "```"] if shown else lines
