"""The law of order: an intent that is still ready comes after every comparable one that was handed out."""

from __future__ import annotations

from collections.abc import Callable

from duetime.kernel.kernel import Applied
from duetime.protocol.effect import Deliver
from duetime.protocol.intent import BLOCKED, Intent
from duetime.protocol.terms import Limit
from duetime.testing.sim.observed import ObservedLane, Seen

Peek = Callable[[str], Intent | None]
"""Shows an intent right after a record."""
Kind = tuple[str, int, tuple[Limit, ...], str]
"""Intents that share one order: those of a lane and a tier (-1: all), with the same limits and key."""


def check_order(applied: Applied, seen: dict[str, Seen], rows: dict[str, ObservedLane], peek: Peek) -> None:
    if any(change.old is BLOCKED for change in applied.changes):
        return  # it became ready after others had gone
    last: dict[Kind, tuple[int, int]] = {}
    for effect in applied.effects:
        if isinstance(effect, Deliver) and not seen[effect.id].serial:
            tier = -1 if effect.consumer else effect.terms.tier
            kind = (effect.terms.lane, tier, seen[effect.id].limits, seen[effect.id].share)
            last[kind] = max(last.get(kind, (-1 << 62, 0)), _place(seen[effect.id], peek))
    for (lane, tier, limits, share), place in last.items():
        for id in rows[lane].due:
            due = seen[id]
            if tier in (-1, due.tier) and (limits, share) == (due.limits, due.share):
                assert _place(due, peek) > place, f"{id!r} was overtaken in {lane!r}"


def _place(seen: Seen, peek: Peek) -> tuple[int, int]:
    intent = peek(seen.id)
    assert intent is not None
    behind_ms = 2 * seen.expected_ms  # twice its predicted run time
    return intent.due_at_ms - 1000 * intent.terms.priority + behind_ms, seen.number
