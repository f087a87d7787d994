"""Answers that need no record: repeats of earlier requests, and refusals that follow from the current state.
Reads only.

Called before a command is written, on the current state. `now_ms` is the timestamp the record would have: an
answer that depends on time is given only if it holds at that time. None means: write the command and see.
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
    """The answer if the command would change nothing; None if it may change something."""
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
    """The same for one new intent. Most name no id, key or group that could already exist."""
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
