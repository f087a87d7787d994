"""`duetime shell`: the same commands, interactively, with completion and history."""

from __future__ import annotations

import shlex
import sys
import traceback
from collections.abc import Callable, Iterable

from duetime import config
from duetime.cli.args import server
from duetime.cli.ui import output
from duetime.client.http.address import url_of
from duetime.errors import BadConfig

# Commands of the shell itself.
ENDS = ("exit", "quit")
WORDS = ("help", *ENDS)
# Commands that are not available in the shell.
LEFT_OUT = ("shell",)


def shell(url: server.UrlOption = None, token: server.TokenOption = None) -> None:
    """Run the same commands interactively, with completion (Tab) and history (arrow keys).

    Ctrl-C clears the line or stops the running command; Ctrl-D or `exit` quits. `help` lists the commands,
    `help COMMAND` explains one. Lines may also be piped in; then the exit code is 1 if one of them failed.

    Examples:

      duetime shell --url http://localhost:7928
    """
    before = (server.default.url, server.default.token)
    server.default.url = url_of(url)
    server.default.token = token
    try:
        failed = _interactive() if sys.stdin.isatty() else _piped(sys.stdin)
    finally:
        server.default.url, server.default.token = before
    if failed:
        sys.exit(1)


def _piped(lines: Iterable[str]) -> bool:
    """Run all lines, as a script. Returns whether one of them failed."""
    failed = False
    for line in lines:
        code = run(line)
        if code is None:
            break
        failed |= code != 0
    return failed


def _interactive() -> bool:
    ask = _prompt()
    output.words(f"Duetime at {server.default.url}. `help` lists the commands, Tab completes, Ctrl-D quits.")
    while True:
        try:
            line = ask()
        except KeyboardInterrupt:
            continue  # Ctrl-C: the line is discarded
        except EOFError:
            return False
        if run(line) is None:
            return False


def _prompt() -> Callable[[], str]:
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory, InMemoryHistory
    except ImportError:
        raise BadConfig(
            "The shell needs prompt_toolkit, which is not installed.",
            hint="Install it with `pip install 'duetime[client]'`.",
        ) from None
    from duetime.cli.ui.completion import Completing

    folder = config.state_folder()
    history: FileHistory | InMemoryHistory
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = folder / "history"
        file.touch(mode=0o600)  # lines may contain payloads
        history = FileHistory(str(file))
    except OSError:
        history = InMemoryHistory()  # the shell also works if the home folder is read-only
    session: PromptSession[str] = PromptSession(
        history=history, completer=Completing(), complete_while_typing=False
    )
    return lambda: session.prompt("duetime> ")


def run(line: str) -> int | None:
    """Run one line. Returns its exit code, or None to quit."""
    from duetime.cli.main import COMMANDS, EXIT_USAGE, main

    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        output.words(f"error: the line cannot be read: {error}", style="red")
        return EXIT_USAGE
    if words and words[0] == "duetime":
        del words[0]
    if not words:
        return 0
    if words[0] in ENDS:
        return None
    if words[0] == "help":
        words = [*words[1:], "--help"]
    if words[0] in LEFT_OUT or (words[0] not in COMMANDS and not words[0].startswith("-")):
        output.words(f"error: unknown command {words[0]!r}", style="red")
        output.words("hint: `help` lists the commands")
        return EXIT_USAGE
    try:
        return main(words)
    except KeyboardInterrupt:
        output.words("Interrupted.")
        return 130
    except Exception:
        for each in traceback.format_exc().splitlines():
            output.words(each)  # a bug must not end the shell
        return 1
