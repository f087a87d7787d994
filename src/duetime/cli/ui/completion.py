"""Completion in the shell: commands, their options, some values, and ids shown recently."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import typer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from duetime.cli.commands.shell import LEFT_OUT, WORDS
from duetime.cli.main import COMMANDS, build
from duetime.cli.ui import observed
from duetime.protocol.intent import Status
from duetime.protocol.terms import AckLevel, Tier

_TIERS = [tier.name for tier in Tier]
VALUES = {
    "--status": [status.name for status in Status],
    "-s": [status.name for status in Status],
    "--tier": _TIERS,
    "--order": ["newest", "due"],
    "--role": ["read", "submit", "worker", "admin"],
    "--priority": ["HIGH", "NORMAL", "LOW"],
    "--expired-action": ["DISCARD", "DEAD_LETTER"],
    "--guarantee": ["AT_LEAST_ONCE", "AT_MOST_ONCE"],
    "--ack": [level.name for level in AckLevel if level is not AckLevel.REPLICATED],
    "--on-duplicate": ["return", "reject"],
}
TARGETS = ["http://", "https://", "task:", "stream:", "entity:"]
# Commands that take an id as an argument, and options that take one as a value.
TAKE_IDS = ("get", "why", "history", "cancel", "fire", "revive", "replay", "dead-letters")
ID_OPTIONS = ("--intent", "-i", "--after")


class Completing(Completer):
    """Completes the word before the cursor."""

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        line = document.text_before_cursor
        word = document.get_word_before_cursor(WORD=True)
        try:
            before = shlex.split(line[: len(line) - len(word)])
        except ValueError:
            return  # inside quotes
        found = offers(before, word)
        for offer in found:
            # A single match is complete, unless it is the beginning of a target.
            end = " " if len(found) == 1 and not offer.endswith((":", "/")) else ""
            yield Completion(offer + end, -len(word), display=offer)


def offers(before: list[str], word: str) -> list[str]:
    """The possible words after these words."""
    if not before:
        return _fitting(word, [*(name for name in COMMANDS if name not in LEFT_OUT), *WORDS])
    if before[0] == "help":
        return _fitting(word, COMMANDS) if len(before) == 1 else []
    if before[0] not in COMMANDS:
        return []
    command, path = _found(before)
    last = before[-1]
    if last in VALUES and any(last in parameter.opts for parameter in command.params):
        return _fitting(word.upper(), VALUES[last]) or _fitting(word, VALUES[last])
    if last in ID_OPTIONS:
        return _fitting(word, observed.newest_first())
    if word.startswith("-"):
        used = {name for name in before if name.startswith("--")}
        options = [name for each in command.params for name in each.opts if name.startswith("--")]
        return _fitting(word, [name for name in (*options, "--help") if name not in used])
    if hasattr(command, "commands"):
        return _fitting(word, command.commands)
    if path[0] == "schedule" and len(before) == 1:
        return _fitting(word, TARGETS)
    return _fitting(word, observed.newest_first()) if path[0] in TAKE_IDS else []


def _fitting(word: str, offers: Iterable[str]) -> list[str]:
    return [offer for offer in offers if offer.startswith(word)]


def _found(before: list[str]) -> tuple[Any, list[str]]:
    """The innermost command that these words name."""
    path = [before[0]]
    command = _command(before[0])
    for word in before[1:]:
        children = getattr(command, "commands", None)
        if children is None or word not in children:
            break
        command = children[word]
        path.append(word)
    return command, path


@cache
def _command(name: str) -> Any:
    group: Any = typer.main.get_command(build({name}))
    return group.commands[name]
