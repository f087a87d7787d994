"""The history of an intent, step by step. Owns `Rare` and its entries.

The current part of a history is in the intent's own fields (created, due, dispatched, finished), so the
usual one costs nothing here. Its steps are written down only when an attempt ends without ending the intent.
"""

from __future__ import annotations

from duetime.duration_text import span
from duetime.limits import HISTORY_ENTRIES_MAX
from duetime.protocol.intent import (
    ACKED,
    BLOCKED,
    CANCELED,
    DISPATCHING,
    DUE,
    FINAL,
    SCHEDULED,
    Entry,
    Intent,
    Rare,
    Status,
)

# How the note of an intent begins that waited for a failure, or for such an intent, and is not needed.
UNNEEDED = "not needed: "


def rare_of(intent: Intent) -> Rare:
    """The intent's rare part, created if missing."""
    rare = intent.rare
    if rare is None:
        rare = intent.rare = Rare()
    return rare


def note(intent: Intent, at_ms: int, status: Status, text: str) -> None:
    """Write down a step that the fields do not show."""
    rare = rare_of(intent)
    if rare.history is None:
        rare.history = []
    entries = rare.history
    entries.append(Entry(at_ms, status, intent.delivery, text))
    if len(entries) > HISTORY_ENTRIES_MAX:
        # The first and the newest steps are the most useful; the middle is dropped.
        del entries[HISTORY_ENTRIES_MAX // 4]


def unneeded(intent: Intent) -> bool:
    """Whether it was cancelled because everything it waited for succeeded. This is no failure."""
    history = intent.rare.history if intent.rare is not None else None
    if intent.status is not CANCELED or not history:
        return False
    return history[-1].note.startswith(UNNEEDED)


def close_attempt(intent: Intent, at_ms: int, text: str) -> None:
    """The current attempt ended and another follows: keep its steps."""
    note(intent, intent.due_at_ms, DUE, "")
    note(intent, intent.dispatched_at_ms, DISPATCHING, limited(intent))
    note(intent, at_ms, SCHEDULED, text)
    intent.due_at_ms = intent.dispatched_at_ms = 0


def limited(intent: Intent) -> str:
    """The time a first call waited for a limit, as text; that time is not lateness."""
    if intent.limited_ms <= 0 or intent.first_dispatch_at_ms < intent.dispatched_at_ms:
        return ""
    return f"waited {span(intent.limited_ms)} for a limit, a pause or its entity"


def entries_of(intent: Intent) -> list[Entry]:
    """The whole history, in time order.

    The step at which an intent became due has the planned moment, which may be before the step that led
    to it: an intent for the near past is due as soon as it is created, and is shown that way.
    """
    entries = _entries(intent)
    for place in range(1, len(entries)):
        entry, before_ms = entries[place], entries[place - 1].at_ms
        if entry.status is DUE and entry.at_ms < before_ms:
            entries[place] = Entry(before_ms, DUE, entry.delivery, entry.note)
    return entries


def _entries(intent: Intent) -> list[Entry]:
    """Created, then the steps written down, then the current steps."""
    rare = intent.rare
    waits = rare is not None and (rare.after or (rare.ties is not None and rare.ties.members))
    first = BLOCKED if waits else SCHEDULED
    entries = [Entry(intent.created_at_ms, first, 0, "")]
    steps = rare.history if rare is not None and rare.history else []
    replaced = intent.status is CANCELED and bool(steps) and steps[-1].status is CANCELED
    entries.extend(steps[:-1] if replaced else steps)
    if intent.due_at_ms:
        entries.append(Entry(intent.due_at_ms, DUE, 0, ""))
    if intent.dispatched_at_ms:
        entries.append(Entry(intent.dispatched_at_ms, DISPATCHING, intent.delivery, limited(intent)))
    if intent.status in FINAL:
        error = rare.last_error if rare is not None and intent.status is not ACKED else None
        text = error.message if error is not None else steps[-1].note if replaced else ""
        entries.append(Entry(intent.finished_at_ms, intent.status, intent.delivery, text))
    return entries


def close_life(intent: Intent, at_ms: int) -> None:
    """A dead letter is revived: keep the steps that led there, and start over."""
    steps = _entries(intent)
    kept = len(rare_of(intent).history or ()) + 1
    for step in steps[kept:]:
        note(intent, step.at_ms, step.status, step.note)
    note(intent, at_ms, SCHEDULED, "revived")
    intent.due_at_ms = intent.dispatched_at_ms = intent.first_dispatch_at_ms = 0
    intent.late_ms = -1
    intent.limited_ms = intent.late_from_ms = 0
