"""The `duetime` command: which subcommands there are, how errors are shown, what the exit code says.

A subcommand lives in a module of its own, and only the one that is called is imported, so that
`duetime --help` does not wait for an engine.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Collection, Sequence
from importlib.metadata import version
from typing import Annotated, Final, NamedTuple

import typer

from duetime import trouble
from duetime.cli.ui import output
from duetime.errors import Damaged, Denied, DiskFailed, DuetimeError, Held, NoSpace, TooNew, Unreachable

EXIT_OK: Final = 0
EXIT_ERROR: Final = 1
EXIT_USAGE: Final = 2  # given by Typer itself
EXIT_DAMAGED: Final = 3
EXIT_UNREACHABLE: Final = 4
EXIT_LATER: Final = 5
EXIT_UNUSABLE: Final = 6

EXIT_CODES: Final = (
    "Exit codes: 0 all is well; 1 it was refused or could not be done (the reason and a hint are on stderr); "
    "2 the command line is wrong; 3 stored data is damaged; 4 the server cannot be reached; "
    "5 it may work later: the disk is full or failed, files or memory are short, or another process holds "
    "the folder; 6 this program cannot use the data folder: no permission, not a folder, or a newer version."
)


class Command(NamedTuple):
    """Where a subcommand lives. `help` is what the list shows; the module's own text is shown by --help."""

    module: str
    attribute: str
    help: str


COMMANDS: Final = {
    "serve": Command("duetime.cli.commands.serve", "serve", "Run the server: HTTP, gRPC, webhooks."),
    "worker": Command("duetime.cli.commands.worker", "worker", "Run the functions of an App for a server."),
    "relay": Command("duetime.cli.commands.relay", "relay", "Hand an outbox's rows to a server."),
    "schedule": Command(
        "duetime.cli.commands.schedule", "schedule", "Schedule a webhook, a task, a message."
    ),
    "get": Command("duetime.cli.commands.intents", "get", "Show everything about an intent."),
    "list": Command("duetime.cli.commands.intents", "list_", "List intents."),
    "why": Command("duetime.cli.commands.intents", "why", "Say why an intent has not run yet."),
    "history": Command("duetime.cli.commands.intents", "history", "Show every step of an intent's life."),
    "logs": Command("duetime.cli.commands.intents", "logs", "Show what an intent's newest attempt logged."),
    "follow": Command("duetime.cli.commands.follow", "follow", "Watch transitions as they happen."),
    "cancel": Command("duetime.cli.commands.intents", "cancel", "Stop intents, also while they run."),
    "fire": Command("duetime.cli.commands.intents", "fire", "Make scheduled intents due now."),
    "revive": Command("duetime.cli.commands.intents", "revive", "Try dead letters again."),
    "dead-letters": Command(
        "duetime.cli.commands.dead_letters", "app", "List, revive and purge dead letters."
    ),
    "schedules": Command("duetime.cli.commands.schedules", "app", "List, make, pause and delete schedules."),
    "queues": Command("duetime.cli.commands.queues", "app", "List, limit, pause and resume queues."),
    "health": Command("duetime.cli.commands.health", "health", "Say whether the server is on time."),
    "top": Command("duetime.cli.commands.top", "top", "Watch the server: tiers, lateness, what runs."),
    "functions": Command("duetime.cli.commands.functions", "functions", "List what the workers can run."),
    "chronoscope": Command("duetime.cli.commands.chronoscope", "chronoscope", "Look into the engine."),
    "timeline": Command(
        "duetime.cli.commands.timeline", "timeline", "Show what will fire, and whether on time."
    ),
    "predictions": Command(
        "duetime.cli.commands.predictions", "predictions", "Show how long functions take."
    ),
    "autoscale": Command(
        "duetime.cli.commands.predictions", "autoscale", "Show how many workers queues need."
    ),
    "replay": Command(
        "duetime.cli.commands.replay", "replay", "Show an intent or the system as of a moment."
    ),
    "shell": Command("duetime.cli.commands.shell", "shell", "The same commands, interactively."),
    "token": Command("duetime.cli.commands.token", "app", "Make, list and revoke tokens of a server."),
    "backup": Command("duetime.cli.commands.backup", "backup", "Copy a data folder while its server runs."),
    "receive": Command(
        "duetime.cli.commands.receive", "receive", "Show webhooks that arrive on this machine."
    ),
    "demo": Command("duetime.cli.commands.demo", "demo", "Watch an engine work, with an account at the end."),
    "simulate": Command("duetime.cli.commands.simulate", "simulate", "Run the engine through seeded faults."),
    "log": Command(
        "duetime.cli.commands.log", "app", "Look into a log: its segments, its records, its damage."
    ),
    "config": Command("duetime.cli.commands.config", "app", "Show and check the settings."),
}


def _print_version(wanted: bool) -> None:
    if wanted:
        output.text(f"duetime {version('duetime')}")
        raise typer.Exit


def _root(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """A durable time and task engine: things happen on time, survive crashes, and can say why."""


def build(called: Collection[str]) -> typer.Typer:
    """The application; of its subcommands, those in `called` are real, the others are only listed."""
    app = typer.Typer(
        name="duetime",
        no_args_is_help=True,
        pretty_exceptions_enable=False,  # an error is shown by `main`; a bug deserves a plain traceback
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(epilog=EXIT_CODES)(_root)
    for name, command in COMMANDS.items():
        if name not in called:
            app.command(name, help=command.help)(_listed)
            continue
        found = getattr(importlib.import_module(command.module), command.attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
    return app


def _listed() -> None:
    raise AssertionError("a subcommand that is called has been imported")


def _called(arguments: Sequence[str]) -> Collection[str]:
    # While the shell completes a line its words stand elsewhere: then every subcommand is wanted.
    if "_DUETIME_COMPLETE" in os.environ:  # tidy: set by the shell's completion, not a setting
        return COMMANDS
    return {argument for argument in arguments if not argument.startswith("-")}


def exit_code(error: DuetimeError) -> int:
    """What a failed command leaves with."""
    if isinstance(error, Damaged):
        return EXIT_DAMAGED
    if isinstance(error, NoSpace | DiskFailed | Held):
        return EXIT_LATER
    if isinstance(error, Denied | TooNew):
        return EXIT_UNUSABLE
    return EXIT_UNREACHABLE if isinstance(error, Unreachable) else EXIT_ERROR


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    if not __debug__:
        sys.stderr.write(
            "error: Duetime does not run under `python -O` or PYTHONOPTIMIZE.\n"
            "hint: Its assertions guard stored data and must stay on; start Python without the option.\n"
        )
        return EXIT_ERROR
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        build(_called(given))(args=given, prog_name="duetime")
    except DuetimeError as error:
        output.fail(error)
        return exit_code(error)
    except OSError as error:
        told = trouble.of_system(error, "")
        output.fail(told)
        return exit_code(told)
    except SystemExit as stop:
        if isinstance(stop.code, str):  # sys.exit("a reason")
            output.words(stop.code)
            return EXIT_ERROR
        return stop.code or EXIT_OK
    return EXIT_OK
