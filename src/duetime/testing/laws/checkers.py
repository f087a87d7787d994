"""The laws, independent of the kernel: a small model of what an outside observer could see, in log order.

`IntentLives` follows the records that are on the log, so after power loss it is rebuilt from those that
are left. Nothing here calls the kernel; each law is a second, different statement of the same rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from duetime.kernel.kernel import Applied
from duetime.limits import TIER_PERMITS
from duetime.protocol.command import (
    Cancel,
    Command,
    Configure,
    Drain,
    FireNow,
    Leap,
    Patch,
    Purge,
    Resize,
    Revive,
    SetLane,
    Settings,
    Settle,
    Start,
    Submit,
)
from duetime.protocol.effect import Abort, Change, Deliver
from duetime.protocol.intent import (
    ACKED,
    BLOCKED,
    CANCELED,
    DEAD_LETTERED,
    DISPATCHING,
    DUE,
    EXPIRED,
    FINAL,
    SCHEDULED,
    Intent,
    Item,
    Status,
)
from duetime.protocol.outcome import Done, Expired, Failed, Outcome, Rejected, Returned, Snoozed
from duetime.protocol.record import Record
from duetime.protocol.reply import Existing, Reason, Refusal, Reply
from duetime.protocol.terms import Guarantee, Terms
from duetime.testing.laws.claims import ClaimLaw
from duetime.testing.laws.delays import check_dead, check_retry
from duetime.testing.laws.fairness import FairnessLaw
from duetime.testing.laws.groups import GroupLaw
from duetime.testing.laws.handover import check_delivery
from duetime.testing.laws.leaps import Leaps
from duetime.testing.laws.order import Peek, check_order
from duetime.testing.laws.rates import Rates
from duetime.testing.laws.ticks import Ticks
from duetime.testing.sim.observed import ObservedLane, Seen


class IntentLives:
    """The life of every intent in log order, and the laws of such lives."""

    def __init__(self) -> None:
        self.seen: dict[str, Seen] = {}
        self.rows: dict[str, ObservedLane] = {}
        self.keys: dict[str, list[Seen]] = {}
        self.settings = Settings()
        self.limits = list(TIER_PERMITS)
        self.used = [0] * len(TIER_PERMITS)
        self.lent = [0] * len(TIER_PERMITS)
        self.packed = [0] * len(TIER_PERMITS)
        self.rates = Rates()
        self.ticks = Ticks()
        self.groups = GroupLaw(self.seen)
        self.claims = ClaimLaw()
        self.shares = FairnessLaw()
        self.shares.configured(self.settings.pushed, ())
        self.leaps = Leaps()
        self.at_ms = 0
        self.number = 0
        self.outcomes: dict[str, Outcome] = {}
        self.draining = False
        self.timed = ""
        """The intent whose time was set by the record's command."""
        self.moves: dict[tuple[Status | None, Status], int] = {}

    def live(self) -> list[Seen]:
        return [seen for seen in self.seen.values() if seen.status not in FINAL]

    def observe(self, record: Record, applied: Applied, peek: Peek) -> None:
        """Observe one more record and its result. `peek` shows an intent right after it."""
        self.at_ms = record.at_ms
        self.leaps.passes(record)
        self.rates.pass_to(record.at_ms, record.command.by_ms if isinstance(record.command, Leap) else 0)
        self.outcomes, self.timed = {}, ""
        self.groups.begin(record)
        command, answer = record.command, applied.answer
        if isinstance(command, Cancel | FireNow | Patch | Revive) and isinstance(answer, Intent):
            self.seen[command.id].requested(command.request)
        match command:
            case Submit(terms, items):
                assert isinstance(answer, list)
                for item, reply in zip(items, answer, strict=True):
                    assert not isinstance(reply, bool)
                    self._submitted(terms[item.terms], item, reply)
            case Settle():
                assert isinstance(answer, list)
                self._settled(command, answer, applied.changes)
            case Patch() if isinstance(answer, Intent):
                self._patched(command)
            case FireNow() if isinstance(answer, Intent):
                seen = self.seen[command.id]
                seen.execute_at_ms = min(seen.execute_at_ms, self.at_ms)
                self._set_time(seen)
            case Drain():
                self.draining = True
            case Resize() if answer is None:
                self.limits[command.tier] = command.permits
            case Configure():
                self.settings = command.settings
                due = [seen for seen in self.seen.values() if seen.status is DUE]
                self.shares.configured(command.settings.pushed, due)
            case SetLane(lane, settings) if answer is None:
                self.rates.set_lane(lane, settings)
        self.leaps.believes(self.settings)
        used, lent = self._used(), list(self.lent)
        running = {id for id, seen in self.seen.items() if "@" in id and seen.status not in FINAL}
        for change in applied.changes:
            if change.old is None:
                self._new(change, peek)
            self._changed(change, record, peek)
        self.claims.newest_wins()
        if isinstance(command, Start):
            self.draining = False
        self.leaps.applied(record, applied, self.outcomes)
        new = [change.id for change in applied.changes if change.old is None]
        self.ticks.observe(command, answer, self.seen, running, new, self.leaps)
        if isinstance(command, Purge) and isinstance(answer, list):
            for id, reply in zip(command.ids, answer, strict=True):
                if not isinstance(reply, Refusal):
                    self._purged(id)
        self.groups.check(record, not isinstance(answer, Intent))
        self._check_permits(used, lent)
        self._check_effects(applied)
        check_order(applied, self.seen, self.rows, peek)
        _check_logs(command, answer, peek)

    # Commands.

    def _submitted(self, terms: Terms, item: Item, reply: Reply) -> None:
        twins = self._twins(item.key) if item.key is not None else []
        if isinstance(reply, Existing) and reply.intent.id == item.id:
            same = item.request in self.seen[item.id].requests or self.groups.knows(item)
            assert same, f"{item.id!r} was not made by this request"
        elif self.claims.said(item, reply, twins, self.seen, self.leaps.believed_ms):
            pass
        elif isinstance(reply, Existing):
            twin = next((twin for twin in twins if twin.id == reply.intent.id), None)
            assert twin is not None, f"the key {item.key!r} gave {reply.intent.id!r}"
            assert twin.fingerprint == item.fingerprint, f"the key {item.key!r} was used for another body"
        elif isinstance(reply, Refusal):
            if reply.reason in (Reason.KEY_REUSED, Reason.KEY_FINISHED):
                assert twins, f"the key {item.key!r} is free and was refused"
        else:
            assert reply is not None and reply.id == item.id
            for twin in twins:
                assert self._forgettable(twin), f"the key {item.key!r} made {twin.id!r} and {item.id!r}"
            old = self.seen.get(item.id)
            assert old is None or old.status in FINAL, f"{item.id!r} lives and was made again"
            seen = self.seen[item.id] = Seen(terms, item, self.at_ms)
            self.groups.made(item)
            if item.key is not None:
                self.keys.setdefault(item.key, []).append(seen)

    def _twins(self, key: str) -> list[Seen]:
        """The intents that a key may mean now: the newest, and older ones if the newest may be forgotten."""
        found: list[Seen] = []
        for seen in reversed(self.keys.get(key, [])):
            if seen.created_at_ms + self.settings.key_window_ms > self.leaps.believed_ms:
                found.append(seen)
            if not self._forgettable(seen):
                break
        return found

    def _forgettable(self, seen: Seen) -> bool:
        """Whether it may be forgotten: it is finished, and its key's window was over at some time."""
        return seen.status in FINAL and seen.created_at_ms < self.leaps.key_mark_ms

    def _settled(self, command: Settle, answer: list[Reply] | list[bool], changes: list[Change]) -> None:
        for settlement, counted in zip(command.settlements, answer, strict=True):
            seen = self.seen.get(settlement.id)
            current = (
                seen is not None
                and seen.status is DISPATCHING
                and seen.delivery == settlement.delivery
                and seen.holder == settlement.consumer
                and seen.id not in self.outcomes
            )
            if counted:
                assert current, f"an outcome of {settlement.id!r}#{settlement.delivery} counted: it is stale"
                self.outcomes[settlement.id] = settlement.outcome
            elif current:
                # An outcome of the current delivery loses only to a lease that ran out in this record.
                lost = any(change.id == settlement.id and change.old is DISPATCHING for change in changes)
                assert lost, f"an outcome of {settlement.id!r}#{settlement.delivery} was refused"

    def _patched(self, command: Patch) -> None:
        seen = self.seen[command.id]
        if command.execute_at_ms is not None:
            seen.execute_at_ms = command.execute_at_ms
            self._set_time(seen)
        if command.deadline_ms is not None:
            if seen.deadline_ms and seen.not_before_ms > seen.deadline_ms:
                # A wait that was to end at the deadline ends there, also when the deadline moves.
                seen.not_before_ms = seen.deadline_ms
            seen.deadline_ms = command.deadline_ms
        if command.redelivery is not None:
            seen.redelivery = command.redelivery
            # An attempt that was already planned is still made.
            seen.attempts_max = max(command.redelivery.max_attempts, seen.attempt + 1)

    def _purged(self, id: str) -> None:
        """A dead letter was purged: its key and its id are free."""
        seen = self.seen[id]
        seen.purged = True
        assert seen.status is DEAD_LETTERED, f"{id!r} was purged and is {seen.status}"
        self.claims.purged(seen)
        if seen.key is not None:
            self.keys[seen.key].remove(seen)

    def _set_time(self, seen: Seen) -> None:
        """A caller sets the time: no earlier wait applies, nor one that begins in this very record."""
        seen.not_before_ms = 0
        self.timed = seen.id

    # Changes.

    def _new(self, change: Change, peek: Peek) -> None:
        """An intent was created: by a submit, or by a schedule."""
        if "@" in change.id:
            intent = peek(change.id)
            assert intent is not None, f"{change.id!r} was made and is not there"
            item = Item(intent.id, 0, intent.execute_at_ms, intent.payload)
            self.seen[change.id] = Seen(intent.terms, item, self.at_ms)
        self.number += 1
        seen = self.seen[change.id]
        seen.number = self.number
        self.claims.taken(seen, peek(change.id), self.leaps.believed_ms, self.leaps.key_mark_ms)

    def _changed(self, change: Change, record: Record, peek: Peek) -> None:
        seen, old, new = self.seen[change.id], change.old, change.new
        id = change.id
        self.moves[(old, new)] = self.moves.get((old, new), 0) + 1
        assert seen.status is old, f"{id!r} moved from {old} and was {seen.status}"
        assert change.at_ms == self.at_ms, f"{id!r} changed at {change.at_ms}, the record's is {self.at_ms}"
        if old in FINAL:
            assert old is DEAD_LETTERED and new is SCHEDULED, f"{id!r} left {old} for {new}: final is final"
            assert isinstance(record.command, Revive) and record.command.id == id
            seen.revived(record.command, self.at_ms)
        row = self.rows.setdefault(seen.lane, ObservedLane())
        if old is DUE:
            row.due.pop(id, None)
            self.shares.go(seen, started=new is DISPATCHING)
        elif old is DISPATCHING:
            row.running.pop(id)
            self._ended_delivery(seen, new, record, peek)
            self._give_back(seen)
            self.rates.back(seen)
        elif old is BLOCKED and new is SCHEDULED:
            self.groups.goes_on(seen, self.at_ms)
        seen.status = new
        if new is SCHEDULED and old is DUE and seen.waits_in_place(record.command):
            row.holder = row.holder or id
        if old in FINAL:
            self.claims.taken(seen, None, self.leaps.believed_ms, self.leaps.key_mark_ms)
        if new is DUE:
            row.due[id] = None
            self.shares.come(seen)
        elif new is DISPATCHING:
            self._handed_out(seen, row, change, peek)
        elif new in FINAL:
            seen.ends += 1
            seen.finished_at_ms = self.at_ms
            if row.holder == id:
                row.holder = None
            self._ended(seen, old, record)

    def _handed_out(self, seen: Seen, row: ObservedLane, change: Change, peek: Peek) -> None:
        id, at_ms = seen.id, self.at_ms
        assert change.delivery == seen.delivery + 1, (
            f"{id!r}: delivery {change.delivery} after {seen.delivery}"
        )
        seen.delivery = change.delivery
        seen.attempt += 1
        seen.runs += 1
        assert at_ms >= seen.execute_at_ms, f"{id!r} went out {seen.execute_at_ms - at_ms} ms before its time"
        assert at_ms >= seen.not_before_ms, (
            f"{id!r} went out {seen.not_before_ms - at_ms} ms before its wait was over"
        )
        assert not seen.deadline_ms or at_ms < seen.deadline_ms, f"{id!r} went out after its deadline"
        assert seen.attempt <= seen.attempts_max, f"{id!r}: attempt {seen.attempt} of {seen.attempts_max}"
        if seen.guarantee is Guarantee.AT_MOST_ONCE:
            assert seen.runs == 1, f"{id!r} is at most once and went out again"
        if seen.serial:
            assert not row.running, f"{id!r} went out while {list(row.running)} ran in {seen.lane!r}"
            assert row.holder in (None, id), f"{id!r} went out, and {row.holder!r} was there before"
            if row.holder is None:
                before = [other for other in row.due if self.seen[other].number < seen.number]
                assert not before, f"{id!r} went out before {before} in {seen.lane!r}"
            row.holder = id
        row.running[id] = None
        self.rates.go(seen)
        intent = peek(id)
        if intent is not None and intent.status is DISPATCHING and intent.permit >= 0:
            seen.permit = intent.permit
            assert seen.permit >= seen.tier, f"{id!r} borrowed from a higher tier"
            self.packed[seen.permit] += seen.packed
            self.used[seen.permit] += not seen.packed
            self.lent[seen.permit] += seen.permit != seen.tier

    def _give_back(self, seen: Seen) -> None:
        if seen.permit >= 0:
            self.packed[seen.permit] -= seen.packed
            self.used[seen.permit] -= not seen.packed
            self.lent[seen.permit] -= seen.permit != seen.tier
            seen.permit = -1

    def _ended_delivery(self, seen: Seen, new: Status, record: Record, peek: Peek) -> None:
        """A delivery ended: by its outcome, by a cancel, or because it was lost."""
        id, outcome = seen.id, self.outcomes.get(seen.id)
        if outcome is None and self.draining and seen.permit >= 0 and isinstance(record.command, Start):
            outcome = Returned("")  # a channel that is told to stop hands back what it runs
        if new is ACKED:
            assert isinstance(outcome, Done), f"{id!r} is ACKED by {outcome}"
            seen.result = None if outcome.result is None else msgspec.json.decode(outcome.result)
        elif new is CANCELED:
            self._canceled(seen, record.command)
        elif new is DEAD_LETTERED:
            check_dead(seen, outcome)
        elif new is SCHEDULED:
            assert not isinstance(outcome, Done | Expired | Rejected), f"{id!r} waits after {outcome}"
            if isinstance(outcome, Snoozed):
                seen.attempt -= 1
                seen.runs -= 1
                seen.not_before_ms = self.at_ms + outcome.delay_ms
            elif isinstance(outcome, Returned):
                assert seen.guarantee is not Guarantee.AT_MOST_ONCE, f"{id!r} ran and would run again"
                seen.attempt -= 1
                seen.runs -= 1
                seen.not_before_ms = self.at_ms
            elif id != self.timed:
                failed = outcome if isinstance(outcome, Failed) else None
                check_retry(seen, failed, self.at_ms, peek(id))

    def _ended(self, seen: Seen, old: Status | None, record: Record) -> None:
        late = bool(seen.deadline_ms) and self.at_ms >= seen.deadline_ms
        if seen.status is EXPIRED:
            late |= isinstance(self.outcomes.get(seen.id), Expired)
            assert late, f"{seen.id!r} expired before its deadline"
        elif seen.status is DEAD_LETTERED and old in (SCHEDULED, DUE):
            assert late, f"{seen.id!r} died without being out"
        elif seen.status is DEAD_LETTERED and old is BLOCKED:
            assert late or self.groups.may_die(seen), f"{seen.id!r} died, and nothing it waits for did"
        elif seen.status is CANCELED:
            self._canceled(seen, record.command)

    def _canceled(self, seen: Seen, command: Command) -> None:
        if not self.groups.unneeded(seen, command) and not self.claims.replaced(seen, command):
            self.groups.check_canceled(seen.id, command)

    # Laws of a whole record.

    def _used(self) -> list[int]:
        """Permits in use by tier: one for each delivery, or for each pack of them."""
        pack = self.settings.pack
        return [used + -(-packed // pack) for used, packed in zip(self.used, self.packed, strict=True)]

    def _check_permits(self, used: list[int], lent: list[int]) -> None:
        for tier, limit in enumerate(self.limits):
            # After a resize there may be more in flight than the limit, but never one more than before.
            out = self._used()[tier]
            assert out <= max(limit, used[tier]), f"tier {tier}: {out} of {limit} out"
            assert self.lent[tier] <= max(limit // 2, lent[tier]), f"tier {tier} lent {self.lent[tier]}"

    def _check_effects(self, applied: Applied) -> None:
        """Every hand-over is asked for once; every cancelled delivery is aborted."""
        out = [(change.id, change.delivery) for change in applied.changes if change.new is DISPATCHING]
        asked = [(effect.id, effect.delivery) for effect in applied.effects if isinstance(effect, Deliver)]
        assert out == asked, f"handed out {out}, asked of the world {asked}"
        stopped = [
            (change.id, change.delivery)
            for change in applied.changes
            if change.old is DISPATCHING and change.new is CANCELED
        ]
        aborted = [(effect.id, effect.delivery) for effect in applied.effects if isinstance(effect, Abort)]
        assert stopped == aborted, f"cancelled {stopped}, asked to abort {aborted}"
        for effect in applied.effects:
            if isinstance(effect, Deliver):
                seen = self.seen[effect.id]
                seen.holder = effect.consumer
                assert effect.attempt == seen.attempt, f"{effect.id!r}: attempt {effect.attempt}"
                check_delivery(seen, effect)
                assert effect.late_ms >= 0, f"{effect.id!r} is {-effect.late_ms} ms early"


def _check_logs(command: Command, answer: object, peek: Callable[[str], Intent | None]) -> None:
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
