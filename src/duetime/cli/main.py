"""The `duetime` command: the list of subcommands, the output of errors, the exit codes.

Each subcommand has its own module. Only the module that is called is imported, so that `duetime --help` does
not load an engine.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Collection, Sequence
from importlib.metadata import version
from typing import Annotated, Final, NamedTuple

import typer

from duetime import os_errors
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
    "Exit codes: 0 success; 1 refused or failed (reason and hint are on stderr); "
    "2 invalid command line; 3 stored data is damaged; 4 the server is unreachable; "
    "5 may work later: the disk is full or failed, too few file handles or memory, or another process holds "
    "the folder; 6 this program cannot use the data folder: no permission, not a folder, or written by a "
    "newer version."
)


class Command(NamedTuple):
    """The location of a subcommand. `help` is its line in the list; its docstring is shown by --help."""

    module: str
    attribute: str
    help: str


COMMANDS: Final = {
    "serve": Command("duetime.cli.commands.serve", "serve", "Run the server: HTTP, gRPC, webhooks."),
    "worker": Command("duetime.cli.commands.worker", "worker", "Run the functions of an App for a server."),
    "relay": Command("duetime.cli.commands.relay", "relay", "Send outbox rows to a server."),
    "schedule": Command(
        "duetime.cli.commands.schedule", "schedule", "Schedule a webhook, a task or a message."
    ),
    "get": Command("duetime.cli.commands.intents", "get", "Show all fields of an intent."),
    "list": Command("duetime.cli.commands.intents", "list_", "List intents."),
    "why": Command("duetime.cli.commands.intents", "why", "Explain why an intent has not run yet."),
    "history": Command(
        "duetime.cli.commands.intents", "history", "Show every state transition of an intent."
    ),
    "logs": Command("duetime.cli.commands.intents", "logs", "Show the log lines of the newest attempt."),
    "follow": Command("duetime.cli.commands.follow", "follow", "Print state transitions as they happen."),
    "cancel": Command("duetime.cli.commands.intents", "cancel", "Cancel intents, even while they run."),
    "fire": Command("duetime.cli.commands.intents", "fire", "Make scheduled intents due now."),
    "patch": Command("duetime.cli.commands.intents", "patch", "Change intents that wait."),
    "revive": Command("duetime.cli.commands.intents", "revive", "Retry dead letters."),
    "dead-letters": Command(
        "duetime.cli.commands.dead_letters", "app", "List, revive and purge dead letters."
    ),
    "schedules": Command(
        "duetime.cli.commands.schedules", "app", "List, create, pause and delete schedules."
    ),
    "queues": Command("duetime.cli.commands.queues", "app", "List, limit, pause and resume queues."),
    "health": Command("duetime.cli.commands.health", "health", "Show whether the server is on time."),
    "top": Command("duetime.cli.commands.top", "top", "Show a live view of the server."),
    "functions": Command("duetime.cli.commands.functions", "functions", "List the functions of the workers."),
    "chronoscope": Command("duetime.cli.commands.chronoscope", "chronoscope", "Show engine internals."),
    "timeline": Command(
        "duetime.cli.commands.timeline", "timeline", "Show upcoming intents and expected lateness."
    ),
    "predictions": Command(
        "duetime.cli.commands.predictions", "predictions", "Show predicted durations of functions."
    ),
    "autoscale": Command(
        "duetime.cli.commands.predictions", "autoscale", "Show the number of workers each queue needs."
    ),
    "replay": Command(
        "duetime.cli.commands.replay", "replay", "Show an intent or the system at a point in time."
    ),
    "shell": Command("duetime.cli.commands.shell", "shell", "Run the same commands interactively."),
    "secret": Command(
        "duetime.cli.commands.secret", "app", "Create, list and retire secrets that sign webhooks."
    ),
    "token": Command("duetime.cli.commands.token", "app", "Create, list and revoke tokens of a server."),
    "backup": Command(
        "duetime.cli.commands.backup", "backup", "Copy a data folder, even while its server runs."
    ),
    "receive": Command(
        "duetime.cli.commands.receive", "receive", "Print webhooks that arrive on this machine."
    ),
    "demo": Command("duetime.cli.commands.demo", "demo", "Run a demo and print a summary."),
    "simulate": Command(
        "duetime.cli.commands.simulate", "simulate", "Run the engine under simulated faults."
    ),
    "log": Command("duetime.cli.commands.log", "app", "Inspect a log: segments, records, damage."),
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
    """A durable time and task engine: it runs work on time, survives crashes, and explains every delay."""


def build(called: Collection[str]) -> typer.Typer:
    """The application. Only the subcommands in `called` are imported; the others are just listed."""
    app = typer.Typer(
        name="duetime",
        no_args_is_help=True,
        pretty_exceptions_enable=False,  # `main` prints errors; a bug gets a plain traceback
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
    # During completion the words are not in the arguments: import all subcommands.
    if "_DUETIME_COMPLETE" in os.environ:  # tidy: set by the shell's completion, not a setting
        return COMMANDS
    return {argument for argument in arguments if not argument.startswith("-")}


def exit_code(error: DuetimeError) -> int:
    """The exit code of a failed command."""
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
            "hint: Duetime's assertions protect stored data. Start Python without this option.\n"
        )
        return EXIT_ERROR
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        build(_called(given))(args=given, prog_name="duetime")
    except DuetimeError as error:
        output.fail(error)
        return exit_code(error)
    except OSError as error:
        told = os_errors.of_system(error, "")
        output.fail(told)
        return exit_code(told)
    except SystemExit as stop:
        if isinstance(stop.code, str):  # sys.exit("a reason")
            output.words(stop.code)
            return EXIT_ERROR
        return stop.code or EXIT_OK
    return EXIT_OK
