"""Answers that need no record: repeats of what was done before, refusals over what is there. Changes nothing.

Asked before a command is written, of the state as it is. `now_ms` is the time its record would have: what
holds for a time only is known if it holds at that time, too. None means: write the command and see.
"""

from __future__ import annotations

from duetime.kernel.commands import schedules, submit
from duetime.kernel.lookup import find, forbids
from duetime.kernel.state import State
from duetime.protocol.command import (
    Cancel,
    Command,
    FireNow,
    Patch,
    Revive,
    Submit,
)
from duetime.protocol.intent import FINAL, Intent, Item
from duetime.protocol.reply import Existing, Reason, Refusal, Reply
from duetime.protocol.schedule import Timetable
from duetime.protocol.terms import Terms

Known = list[Reply] | Timetable | Existing | Refusal


def answer(state: State, command: Command, now_ms: int) -> Known | None:
    """What the command would be answered if it changed nothing; None if it may change something."""
    if isinstance(command, Submit):
        return _submitted(state, command, now_ms)
    if isinstance(command, schedules.ByCaller):
        return schedules.known(state, command)
    if not isinstance(command, Cancel | FireNow | Patch | Revive):
        return None
    found = find(state, command.id, command.revision, command.request)
    if not isinstance(found, Intent):
        return found
    if isinstance(command, Cancel) and found.status in FINAL and not command.tree:
        return forbids(found, Reason.STATE_FORBIDS, "cancelled")
    return None


def submitted(state: State, terms: Terms, item: Item, now_ms: int) -> Reply:
    """The same for one new intent. Most name nothing that could be there already."""
    if item.fresh and item.key is None and item.request is None:
        return None
    return submit.known(state, terms, item, now_ms)


def _submitted(state: State, command: Submit, now_ms: int) -> list[Reply] | None:
    replies: list[Reply] = []
    for item in command.items:
        reply = submitted(state, command.terms[item.terms], item, now_ms)
        if reply is None:
            return None
        replies.append(reply)
    return replies
