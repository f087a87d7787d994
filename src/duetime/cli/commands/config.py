"""`duetime config`: the effective settings and their origins."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from duetime import config
from duetime.cli.ui import output

app = typer.Typer(help="Show and check the settings.", no_args_is_help=True)


@app.command()
def show(
    file: Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Configuration file.")] = None,
    defaults: Annotated[bool, typer.Option("--defaults", help="Show the defaults and ranges only.")] = False,
    as_json: output.JsonFlag = False,
) -> None:
    """Print every setting with its value and the source of the value."""
    if defaults:
        _show_defaults(as_json)
        return
    loaded = config.load(file)
    rows = [
        (name, _visible(setting, setting.value_in(loaded.config)), loaded.origins[name])
        for name, setting in config.SETTINGS.items()
    ]
    if as_json:
        output.json({name: {"value": value, "origin": origin} for name, value, origin in rows})
    else:
        output.table(
            ("setting", "value", "from"), [(name, shown(value), origin) for name, value, origin in rows]
        )


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to check.")],
    as_json: output.JsonFlag = False,
) -> None:
    """Check a configuration file, without environment variables."""
    loaded = config.load(file, environ={})
    given = [name for name, origin in loaded.origins.items() if origin != config.DEFAULT_ORIGIN]
    if as_json:
        output.json({"file": str(file), "valid": True, "given": given})
    else:
        output.words(f"{file} is valid and sets {len(given)} of {len(config.SETTINGS)} settings.")


def _visible(setting: config.Setting, value: object) -> object:
    """The value to print. For a secret, only whether it is set."""
    return "(set, not shown)" if setting.secret and value else value


def _show_defaults(as_json: bool) -> None:
    settings = config.SETTINGS.values()
    if as_json:
        output.json({s.name: {"value": s.default, "expected": s.expected} for s in settings})
    else:
        rows = [(s.name, shown(s.default), s.expected) for s in settings]
        output.table(("setting", "default", "must be"), rows)


def shown(value: object) -> str:
    """The value as in the file, without quotes."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:_}" if isinstance(value, int) else str(value)
