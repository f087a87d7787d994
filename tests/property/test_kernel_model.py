"""The kernel against a naive model without timers, heaps or counters: it looks at everything each time."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from duetime.kernel import invariants
from duetime.kernel.kernel import Applied, Kernel
from duetime.protocol.command import Advance, Cancel, Command, FireNow, Patch, Resize, Revive, Settle, Submit
from duetime.protocol.effect import Deliver
from duetime.protocol.intent import (
    ACKED,
    CANCELED,
    DEAD_LETTERED,
    DISPATCHING,
    DUE,
    EXPIRED,
    FINAL,
    SCHEDULED,
    Item,
    Status,
)
from duetime.protocol.outcome import Done, Failed, Lost, Outcome, Rejected, Returned, Settlement, Snoozed
from duetime.protocol.record import Record
from duetime.protocol.reply import Refusal
from duetime.protocol.terms import Backoff, Bare, Entity, Redelivery, Target, Terms, Tier, lane_of
from duetime.store.memory import MemoryStore

DELAY_MS = 100
PERMITS = 2
POLICY = Redelivery(3, Backoff.FIXED, DELAY_MS, DELAY_MS, 100, False)
BEGIN_MS = 1_000_000
# One millisecond's slots and one tier: what is due is due at once, and there is one kind of permit.
TIER = Tier.ULTRA


@dataclass
class Naive:
    """One intent. `at_ms`: when it may go; the rest as its words say."""

    seq: int
    entity: str | None
    at_ms: int
    deadline_ms: int
    priority: int
    status: Status = SCHEDULED
    delivery: int = 0
    attempt: int = 0
    lost: bool = False
    holds: bool = False


class Model:
    """All intents in a dict; every question is a walk over all of them."""

    def __init__(self) -> None:
        self.intents: dict[str, Naive] = {}
        self.permits = PERMITS
        self.now_ms = BEGIN_MS
        self.delivered: list[tuple[str, int]] = []

    def begin(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.delivered = []
        for intent in self.intents.values():
            if intent.status not in (SCHEDULED, DUE):
                continue
            if intent.deadline_ms and now_ms >= intent.deadline_ms:
                self.end(intent, EXPIRED)
            elif now_ms >= intent.at_ms:
                intent.status = DUE

    def finish(self) -> None:
        """Hand out what may go, one after the other."""
        while True:
            out = sum(intent.status is DISPATCHING for intent in self.intents.values())
            ready = [id for id, intent in self.intents.items() if self.may_go(intent)]
            if not ready or out >= self.permits:
                return
            id = min(ready, key=lambda id: self.place(self.intents[id]))
            intent = self.intents[id]
            intent.status = DISPATCHING
            intent.delivery += 1
            intent.attempt += 1
            intent.holds = intent.entity is not None
            self.delivered.append((id, intent.delivery))

    def place(self, intent: Naive) -> tuple[int, int]:
        return (intent.at_ms - 1000 * intent.priority, intent.seq)

    def may_go(self, intent: Naive) -> bool:
        if intent.status is not DUE:
            return False
        mates = [
            other
            for other in self.intents.values()
            if intent.entity is not None and other.entity == intent.entity and other is not intent
        ]
        if any(mate.holds for mate in mates):
            return False
        return intent.holds or not any(mate.status is DUE and mate.seq < intent.seq for mate in mates)

    def plan(self, intent: Naive, at_ms: int) -> None:
        """A caller says when: at once means in this record."""
        intent.status, intent.at_ms = SCHEDULED, at_ms
        if self.now_ms >= at_ms:
            intent.status = DUE
            if intent.deadline_ms and self.now_ms >= intent.deadline_ms:
                self.end(intent, EXPIRED)

    def end(self, intent: Naive, status: Status) -> None:
        intent.status, intent.holds = status, False

    def again(self, intent: Naive, at_ms: int) -> None:
        intent.status, intent.at_ms = SCHEDULED, at_ms
        if intent.deadline_ms and intent.deadline_ms < at_ms:
            intent.at_ms = intent.deadline_ms

    def settle(self, id: str, delivery: int, outcome: Outcome) -> bool:
        intent = self.intents.get(id)
        if intent is None or intent.status is not DISPATCHING or intent.delivery != delivery:
            return False
        match outcome:
            case Done():
                self.end(intent, ACKED)
            case Snoozed(delay_ms):
                intent.attempt -= 1
                self.again(intent, self.now_ms + delay_ms)
            case Returned():
                intent.attempt -= 1
                self.again(intent, self.now_ms)
            case Lost() if intent.attempt < POLICY.max_attempts:
                self.again(intent, self.now_ms + (DELAY_MS if intent.lost else 0))
                intent.lost = True
            case Failed() if intent.attempt < POLICY.max_attempts:
                self.again(intent, self.now_ms + DELAY_MS)
                intent.lost = False
            case _:
                self.end(intent, DEAD_LETTERED)
        return True


IDS = Bundle("ids")
OUTCOMES = st.sampled_from(
    [
        Done(),
        Failed("x", "y"),
        Failed("x", "y"),
        Failed("x", "y"),
        Snoozed(30),
        Rejected("x", "y"),
        Lost("z"),
        Returned("z"),
    ]
)


class KernelAgainstModel(RuleBasedStateMachine):
    """The same commands to both; after each, every intent must be the same."""

    ids: Bundle[str] = IDS

    def __init__(self) -> None:
        super().__init__()
        self.kernel = Kernel(MemoryStore())
        self.model = Model()
        self.now_ms = BEGIN_MS
        self.count = 0
        # The other tiers lend nothing of one permit, so ULTRA has just its own.
        for tier in Tier:
            self.apply(Resize(tier, PERMITS if tier == TIER else 1))

    def apply(self, command: Command) -> Applied:
        """Apply it; both must hand out the same, in the same order."""
        applied = self.kernel.apply(Record(self.kernel.state.records + 1, self.now_ms, command))
        self.model.finish()
        delivered = [(e.id, e.delivery) for e in applied.effects if isinstance(e, Deliver)]
        assert delivered == self.model.delivered
        return applied

    @rule(target=IDS, wait=st.integers(0, 60), deadline=st.sampled_from([0, 0, 0, 20, 150]),
          priority=st.sampled_from([0, 0, 1]), entity=st.sampled_from([None, None, "a", "b"]))  # fmt: skip
    def submit(self, wait: int, deadline: int, priority: int, entity: str | None) -> str:
        self.count += 1
        id = f"i{self.count}"
        target: Target = Bare() if entity is None else Entity("e", entity, "m")
        terms = Terms(target, lane_of(target), TIER, redelivery=POLICY, priority=priority)
        at_ms = self.now_ms + wait
        deadline_ms = at_ms + deadline if deadline else 0
        self.model.begin(self.now_ms)
        self.model.intents[id] = Naive(self.count, entity, at_ms, deadline_ms, priority)
        self.model.plan(self.model.intents[id], at_ms)
        self.apply(Submit((terms,), (Item(id, 0, at_ms, deadline_ms=deadline_ms),)))
        return id

    @rule(ms=st.sampled_from([1, DELAY_MS - 1, DELAY_MS]) | st.integers(1, 120))
    def advance(self, ms: int) -> None:
        self.now_ms += ms
        self.model.begin(self.now_ms)
        self.apply(Advance())

    @rule(pick=st.integers(0, PERMITS - 1), outcome=OUTCOMES)
    def answer(self, pick: int, outcome: Outcome) -> None:
        """One of those that are out comes back."""
        out = [id for id, intent in self.model.intents.items() if intent.status is DISPATCHING]
        if out:
            self.settle(out[pick % len(out)], 0, outcome)

    @rule(id=IDS, delivery=st.sampled_from([0, -1, 1]), outcome=OUTCOMES)
    def answer_any(self, id: str, delivery: int, outcome: Outcome) -> None:
        """An answer to a delivery that may be out, over, or still to come."""
        self.settle(id, delivery, outcome)

    def settle(self, id: str, delivery: int, outcome: Outcome) -> None:
        self.model.begin(self.now_ms)
        number = self.model.intents[id].delivery + delivery
        counted = self.model.settle(id, number, outcome)
        assert self.apply(Settle((Settlement(id, number, outcome),))).answer == [counted]

    @rule(id=IDS)
    def cancel(self, id: str) -> None:
        self.model.begin(self.now_ms)
        intent = self.model.intents[id]
        refused = intent.status in FINAL
        if not refused:
            self.model.end(intent, CANCELED)
        assert isinstance(self.apply(Cancel(id)).answer, Refusal) == refused

    @rule(id=IDS)
    def fire(self, id: str) -> None:
        self.model.begin(self.now_ms)
        intent = self.model.intents[id]
        refused = intent.status is not SCHEDULED
        if not refused:
            self.model.plan(intent, self.now_ms)
        assert isinstance(self.apply(FireNow(id)).answer, Refusal) == refused

    @rule(id=IDS, wait=st.none() | st.integers(0, 80), priority=st.none() | st.sampled_from([0, 1]))
    def patch(self, id: str, wait: int | None, priority: int | None) -> None:
        self.model.begin(self.now_ms)
        intent = self.model.intents[id]
        at_ms = None if wait is None else self.now_ms + wait
        refused = intent.status not in (SCHEDULED, DUE)
        if at_ms is not None and not refused:
            refused = bool(intent.deadline_ms) and intent.deadline_ms < at_ms
        if not refused:
            intent.priority = intent.priority if priority is None else priority
            if at_ms is not None:
                self.model.plan(intent, at_ms)
        answer = self.apply(Patch(id, execute_at_ms=at_ms, priority=priority)).answer
        assert isinstance(answer, Refusal) == refused

    @rule(id=IDS, wait=st.integers(0, 50))
    def revive(self, id: str, wait: int) -> None:
        self.model.begin(self.now_ms)
        intent = self.model.intents[id]
        refused = intent.status is not DEAD_LETTERED
        if not refused:
            intent.attempt = intent.deadline_ms = 0
            intent.lost = False
            self.model.plan(intent, self.now_ms + wait)
        assert isinstance(self.apply(Revive(id, 0, self.now_ms + wait, 0)).answer, Refusal) == refused

    @rule(id=consumes(IDS))
    def forget(self, id: str) -> None:
        """Nobody names it any more; it goes on by itself."""

    @invariant()
    def every_intent_is_the_same(self) -> None:
        get = self.kernel.state.store.get
        for id, naive in self.model.intents.items():
            intent = get(id)
            assert intent is not None
            assert (id, intent.status, intent.delivery, intent.attempt) == (
                id, naive.status, naive.delivery, naive.attempt,
            )  # fmt: skip
        invariants.check(self.kernel.state)


TestKernelAgainstModel = KernelAgainstModel.TestCase
