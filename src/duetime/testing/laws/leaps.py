"""The laws of clock jumps, written again: which time is trusted, and how long a worker was silent.

A jump ahead counts for forgetting only after an hour; time that did not pass, or in which no heartbeat could
arrive, counts against no lease.
"""

from __future__ import annotations

from duetime.kernel.kernel import Applied
from duetime.limits import LEAP_BELIEVED_MS, LEAP_RENEWS_MS, MINUTE_MS, STALL_RENEWS_MS
from duetime.protocol.command import Beat, Demand, Leap, Leave, Settings, Start
from duetime.protocol.effect import Deliver
from duetime.protocol.intent import DEAD_LETTERED, DISPATCHING, SCHEDULED
from duetime.protocol.outcome import Outcome
from duetime.protocol.record import Record
from duetime.testing.laws.order import Peek
from duetime.testing.sim.observed import Seen


class Leaps:
    """Time that passed, time in which heartbeats could arrive, and the trusted time."""

    def __init__(self) -> None:
        self.at_ms = 0
        self.believed_ms = 0
        """The trusted time while a record's command is carried out."""
        self.believed_to_ms = 0
        """The latest time that was ever trusted."""
        self.finished_mark_ms = self.dead_mark_ms = self.key_mark_ms = 0
        """Intents that ended, or were created, before these may be forgotten."""
        self._passed_ms = self._heard_ms = 0
        self._doubts: list[list[int]] = []
        """Jumps that are not trusted yet: how far, and when they will be, by the time that passed."""
        self._words: dict[str, int] = {}
        """By worker: its last sign of life, by the time in which heartbeats could arrive."""
        self._held: dict[tuple[str, int], tuple[str, int, int]] = {}
        """Deliveries held by workers: the worker, since when, and the lease."""

    @property
    def in_doubt(self) -> bool:
        return self.believed_ms != self.at_ms

    def passes(self, record: Record) -> None:
        """Time passes up to this record, or only seems to."""
        command, seems_ms = record.command, record.at_ms - self.at_ms
        first, self.at_ms = not self.at_ms, record.at_ms
        by_ms, still_ms = (command.by_ms, command.still_ms) if isinstance(command, Leap) else (0, 0)
        self._passed_ms += max(0, seems_ms - by_ms)
        self._heard_ms += max(0, seems_ms - by_ms - still_ms)
        if isinstance(command, Start):
            by_ms = 0 if first else seems_ms
            if by_ms >= LEAP_BELIEVED_MS:
                self._doubts.clear()
        if by_ms < 0:
            self._came_back(-by_ms)
        elif by_ms:
            until_ms = self._passed_ms + LEAP_BELIEVED_MS
            renews_ms = LEAP_BELIEVED_MS if isinstance(command, Start) else LEAP_RENEWS_MS
            if self._doubts and by_ms < renews_ms:
                until_ms = self._doubts[-1][1]
            self._doubts = [[ms, until_ms] for ms, _ in self._doubts] + [[by_ms, until_ms]]
        if isinstance(command, Start) or still_ms >= STALL_RENEWS_MS:
            self._words = dict.fromkeys(self._words, self._heard_ms)
        self.believed_ms = self.at_ms - sum(ms for ms, _ in self._doubts)

    def _came_back(self, ms: int) -> None:
        while ms and self._doubts:
            back_ms = min(ms, self._doubts[-1][0])
            self._doubts[-1][0] -= back_ms
            ms -= back_ms
            if not self._doubts[-1][0]:
                self._doubts.pop()

    def applied(self, record: Record, applied: Applied, outcomes: dict[str, Outcome]) -> None:
        """A worker declared silent was really silent; a worker that sent something is alive now."""
        command = record.command
        for change in applied.changes:
            if change.old is not DISPATCHING:
                continue
            held = self._held.pop((change.id, change.delivery), None)
            if held is None or change.id in outcomes or change.new not in (SCHEDULED, DEAD_LETTERED):
                continue
            consumer, since_ms, lease_ms = held
            if isinstance(command, Leave) and command.consumer == consumer:
                continue
            silent_ms = self._heard_ms - max(since_ms, self._words[consumer])
            assert silent_ms >= lease_ms, (
                f"{consumer!r} lost {change.id!r}: silent for {silent_ms} ms, its lease is {lease_ms} ms"
            )
        if isinstance(command, Beat | Demand):
            self._words[command.consumer] = self._heard_ms
        for effect in applied.effects:
            if isinstance(effect, Deliver) and effect.consumer:
                place = (effect.id, effect.delivery)
                self._held[place] = (effect.consumer, self._heard_ms, effect.terms.lease_ms)

    def believes(self, settings: Settings) -> None:
        """After the record's command: the time trusted from now on, and what may be forgotten by it."""
        self._doubts = [doubt for doubt in self._doubts if self._passed_ms < doubt[1]]
        believed_ms = self.at_ms - sum(ms for ms, _ in self._doubts)
        self.believed_to_ms = max(self.believed_to_ms, believed_ms)
        minute_ms = believed_ms - believed_ms % MINUTE_MS
        self.finished_mark_ms = max(self.finished_mark_ms, minute_ms - settings.retention_ms)
        self.dead_mark_ms = max(self.dead_mark_ms, minute_ms - settings.dead_letter_retention_ms)
        self.key_mark_ms = max(self.key_mark_ms, minute_ms - settings.key_window_ms)

    def check_kept(self, seen: dict[str, Seen], peek: Peek) -> None:
        """No dead letter is forgotten before its time, by the trusted clock."""
        for each in seen.values():
            if each.status is DEAD_LETTERED and not each.purged:
                kept = each.finished_at_ms >= self.dead_mark_ms
                assert not kept or peek(each.id) is not None, f"the dead letter {each.id!r} is gone"
