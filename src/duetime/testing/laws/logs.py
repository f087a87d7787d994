"""The law of attempts' log output, written again: the newest attempt's is kept, and nothing of a late one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from duetime.protocol.command import Command, Settle
from duetime.protocol.intent import Intent


def check_logs(command: Command, answer: object, peek: Callable[[str], Intent | None]) -> None:
    """After outcomes that counted, each intent has the log output of that attempt, and nothing older."""
    if not isinstance(command, Settle):
        return
    assert isinstance(answer, Sequence)
    for settlement, counted in zip(command.settlements, answer, strict=True):
        intent = peek(settlement.id) if counted else None
        if intent is None:
            continue
        kept = None if intent.rare is None else intent.rare.log
        assert kept == settlement.log, f"{intent.id!r} has {kept!r}, its attempt logged {settlement.log!r}"
