"""The engine's counters: plain numbers, updated once per turn, read by metrics and health.

A meter is optional: an embedded engine has none and pays nothing. Times are by the engine's clock where a
user's time is meant (lateness, waiting) and by the processor's where work is timed (append, sync).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import product
from time import perf_counter  # tidy: measures work, not the time of day

from duetime.channels.pull import Connected
from duetime.clock import Clock
from duetime.engine.reads.function_counts import OUTCOME_NUMBER, OUTCOMES, FunctionCount, FunctionCounts
from duetime.engine.reads.histogram import Histogram, Sliding
from duetime.engine.shell.pump import Turn
from duetime.errors import DuetimeError
from duetime.kernel.state import State
from duetime.limits import (
    HELD_BACK_MAX,
    HOUR_MS,
    METER_RECENT_MS,
    METER_SLICE_MS,
    METERED_STARTS_MAX,
    TIER_NAMES,
)
from duetime.protocol.command import Settle, Submit
from duetime.protocol.effect import Abort, Deliver, Effect
from duetime.protocol.intent import DEAD_LETTERED, DISPATCHING, DUE, FINAL, Intent
from duetime.protocol.outcome import Outcome, Settlement, Snoozed
from duetime.protocol.reply import Answer, Existing
from duetime.protocol.terms import Bare, Callback, Entity, Stream, Task, Terms
from duetime.store.store import ReadStore

LATE_MS = (
    1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1_000, 1_500, 2_000, 3_000, 5_000, 10_000,
    30_000, 60_000, 300_000, 3_600_000,
)  # fmt: skip
TIME_MS = (
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000,
)  # fmt: skip
TIME_S = (
    0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
    0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 4_096)

CHANNELS = ("callback", "task", "entity", "stream", "bare")
_TIERS = range(len(TIER_NAMES))
_CHANNEL = {Callback: 0, Task: 1, Entity: 2, Stream: 3, Bare: 4}
# The places in the tally of transitions to DEAD_LETTERED.
_DEAD = [tier * 64 + old * 8 + DEAD_LETTERED for tier in _TIERS for old in range(8) if old != DEAD_LETTERED]


class Meter:
    """Counters and histograms of one engine, from its start to its end."""

    def __init__(self) -> None:
        self.state: State | None = None
        self.connected: Callable[[], list[Connected]] = list
        """The current connections of consumers."""
        self.begun: Callable[[], Iterable[tuple[str, int]]] = list
        """Deliveries that workers run: the id, and how long each waited before."""
        self._under_way: tuple[int, list[tuple[int, int]]] = (-1, [])
        """The newest result of that: its time, and the tier and lateness of each."""
        self.turns = 0
        self.duplicates = 0
        self.recovery_s = 0.0
        self.last_sync_ms = 0
        self.checkpoint_ms = 0
        """When the last checkpoint was finished."""
        self.append_s = Histogram(TIME_S)
        self.sync_s = Sliding(TIME_S)
        self.checkpoint_s = Histogram(TIME_S)
        self.batch = Histogram(SIZES)
        self.late_ms = [Sliding(LATE_MS) for _ in _TIERS]
        self._again_ms = [Histogram(LATE_MS) for _ in _TIERS]
        """How long every delivery but the first waited after it was due."""
        self.limited_ms = [Histogram(LATE_MS) for _ in _TIERS]
        """How long intents that waited for a limit did so before their first call."""
        self._held: dict[str, tuple[int, int, int]] = {}
        """Intents handed out but not called yet: tier, due time, and time of the next try."""
        self.delivery_ms = [Sliding(TIME_MS) for _ in _TIERS]
        self.execution_s = {channel: Histogram(TIME_S) for channel in CHANNELS}
        self._outcomes = [0] * (len(_TIERS) * len(CHANNELS) * len(OUTCOMES))
        self.functions = FunctionCounts()
        self.batched = [0 for _ in _TIERS]
        """Deliveries that shared a request with others, per tier."""
        self.rejections: dict[int, int] = {}
        """Refusals by error code."""
        self._starts: dict[str, float] = {}
        self._trend: deque[tuple[int, int, int]] = deque(maxlen=HOUR_MS // METER_SLICE_MS + 1)
        """For each slice with a turn in it: its time, the dead letters before it, the number due then."""
        self._dead_before = 0
        self._slice = 0

    # Called by the engine.

    def begin(self, state: State, store: ReadStore, clock: Clock, recovery_s: float) -> None:
        """Recovery is done; these are the state and the store from now on."""
        self.state = state
        self._store = store
        self._clock = clock
        self.recovery_s = recovery_s
        self._dead_before = self.dead_letters()

    def turn(self, turn: Turn) -> None:
        """A batch was written and applied."""
        self.turns += 1
        self.append_s.add(turn.append_s)
        stamp = turn.at_ms // METER_SLICE_MS
        if stamp != self._slice:
            self._slice = stamp
            self._trend.append((turn.at_ms, self._dead_before, self.waiting()))
        self._dead_before = self.dead_letters()
        size = 0
        for command, answer in zip(turn.batch.commands, turn.answers, strict=True):
            if type(command) is Submit:
                size += len(command.items)
                self._count_duplicates(answer)
            elif type(command) is Settle:
                size += len(command.settlements)
            else:
                size += 1
        self.batch.add(size)

    def known(self, answers: Iterable[Answer]) -> None:
        """Requests were answered without a record."""
        for answer in answers:
            self._count_duplicates(answer)

    def _count_duplicates(self, answer: Answer) -> None:
        replies = answer if type(answer) is list else (answer,)
        self.duplicates += sum(type(reply) is Existing for reply in replies)

    def acted(self, effects: Iterable[Effect]) -> None:
        """Deliveries went to their channels."""
        now_s, starts = perf_counter(), self._starts
        for effect in effects:
            if type(effect) is Deliver:
                starts[effect.id] = now_s
            elif type(effect) is Abort:
                starts.pop(effect.id, None)
        if len(starts) > METERED_STARTS_MAX:
            for key in list(starts)[: METERED_STARTS_MAX // 2]:
                del starts[key]

    def settled(self, settlements: list[Settlement]) -> None:
        """Outcomes came back; not yet written, so that the intents still have the time of their hand-over."""
        assert self.state is not None, "the engine begins before anything is handed out"
        now_ms, now_s = self._clock.now_ms(), perf_counter()
        get, start = self._store.peek, self._starts.pop
        terms: Terms | None = None
        row: FunctionCount | None = None
        base = 0
        times_ms: list[int] = []
        times_s: list[float] = []
        late_ms: list[int] = []
        limited_ms: list[int] = []
        held = self._held
        for settlement in settlements:
            intent = get(settlement.id)
            if (
                intent is None
                or intent.status is not DISPATCHING
                or intent.delivery != settlement.delivery
                or intent.consumer != settlement.consumer
            ):
                continue  # stale, or of another consumer: the kernel refuses it, and counts it
            start_s = start(settlement.id, None)
            if intent.terms is not terms:  # outcomes that come together mostly share them
                self._took(terms, times_ms, times_s, late_ms, limited_ms, now_ms)
                terms, times_ms, times_s, late_ms, limited_ms = intent.terms, [], [], [], []
                base = (terms.tier * len(CHANNELS) + _CHANNEL[type(terms.target)]) * len(OUTCOMES)
                row = self.functions.of(terms.target)
            number = OUTCOME_NUMBER[type(settlement.outcome)]
            self._outcomes[base + number] += 1
            if row is not None:
                row.outcomes[number] += 1
            took_ms = now_ms - intent.dispatched_at_ms
            times_ms.append(took_ms)
            # How long it waited for its call, as the kernel counts it; -1: there was no call.
            waited_ms = settlement.waited_ms
            if waited_ms > 0 and waited_ms > took_ms:
                waited_ms = max(0, took_ms)
            if intent.first_dispatch_at_ms != intent.dispatched_at_ms or waited_ms < 0:
                self._other_call(intent, settlement.outcome, waited_ms, now_ms)
            else:  # by far the most frequent: the first call
                if took_ms > METER_RECENT_MS:  # it was counted when it began (see `lateness`)
                    self.late_ms[terms.tier].add_past(intent.late_ms + waited_ms)
                else:
                    late_ms.append(intent.late_ms + waited_ms)
                if intent.limited_ms:
                    limited_ms.append(intent.limited_ms)
                if held:
                    held.pop(settlement.id, None)
            if start_s is not None:
                times_s.append(now_s - start_s)
        self._took(terms, times_ms, times_s, late_ms, limited_ms, now_ms)

    def _other_call(self, intent: Intent, outcome: Outcome, waited_ms: int, now_ms: int) -> None:
        """A delivery was not the first, or had no call (-1)."""
        tier, first = intent.terms.tier, intent.first_dispatch_at_ms == intent.dispatched_at_ms
        if waited_ms >= 0:
            self._again_ms[tier].add(max(0, intent.dispatched_at_ms - intent.due_at_ms) + waited_ms)
        elif first and (intent.id in self._held or len(self._held) < HELD_BACK_MAX):
            again_ms = now_ms + outcome.delay_ms if type(outcome) is Snoozed else now_ms
            self._held[intent.id] = (tier, intent.late_from_ms or intent.due_at_ms, again_ms)

    def _took(
        self,
        terms: Terms | None,
        times_ms: list[int],
        times_s: list[float],
        late_ms: list[int],
        limited_ms: list[int],
        now_ms: int,
    ) -> None:
        if terms is None:
            return
        self.late_ms[terms.tier].at(now_ms).add_many(late_ms)
        self.limited_ms[terms.tier].add_many(limited_ms)
        target = terms.target
        self.delivery_ms[terms.tier].at(now_ms).add_many(times_ms)
        self.execution_s[CHANNELS[_CHANNEL[type(target)]]].add_many(times_s)
        row = self.functions.of(target)
        if row is not None:
            row.seconds.add_many(times_s)
        if type(target) is Callback and target.batch:
            self.batched[terms.tier] += len(times_ms)

    def synced(self, seconds: float) -> None:
        """The log was synced."""
        self.last_sync_ms = self._clock.now_ms()
        self.sync_s.at(self.last_sync_ms).add(seconds)

    def checkpointed(self, seconds: float) -> None:
        """A checkpoint was finished."""
        self.checkpoint_s.add(seconds)
        self.checkpoint_ms = self._clock.now_ms()

    def rejected(self, error: DuetimeError, count: int = 1) -> None:
        """A caller was refused. Called by the code that answers callers, once for each."""
        self.rejections[error.code] = self.rejections.get(error.code, 0) + count

    # Called by readers.

    @property
    def deliveries(self) -> dict[tuple[int, str, str], int]:
        """Deliveries that came back, by tier, channel and outcome."""
        places = product(_TIERS, CHANNELS, OUTCOMES)
        return {place: count for place, count in zip(places, self._outcomes, strict=True) if count}

    def lateness(self, tier: int, now_ms: int) -> Histogram:
        """The lateness of a tier's calls in the last minutes: of those that ended, of those that workers run,
        and of those held back, which are late up to now."""
        found = self.late_ms[tier].recent(now_ms)
        if running := self._running(now_ms):
            found.add_many(late_ms for of, late_ms in running if of == tier)
        if held := self.held_back():
            found.add_many(max(0, now_ms - since_ms) for of, since_ms in held if of == tier)
        return found

    def _running(self, now_ms: int) -> list[tuple[int, int]]:
        """First deliveries that workers got in the last minutes: tier and lateness of each.
        How long one waits inside a worker is known only when it has ended."""
        if self._under_way[0] == now_ms or self.state is None:
            return self._under_way[1]
        found: list[tuple[int, int]] = []
        for id, waited_ms in self.begun():
            intent = self._store.peek(id)
            if (
                intent is not None
                and intent.status is DISPATCHING
                and intent.first_dispatch_at_ms == intent.dispatched_at_ms
                and now_ms - intent.dispatched_at_ms <= METER_RECENT_MS
            ):
                found.append((intent.terms.tier, intent.late_ms + waited_ms))
        self._under_way = now_ms, found
        return found

    def held_back(self) -> list[tuple[int, int]]:
        """Intents that were handed out, are not called yet and still wait: tier and due time."""
        if not self._held or self.state is None:
            return []
        get, now_ms = self._store.peek, self._clock.now_ms()
        for id, (_, _, again_ms) in list(self._held.items()):
            intent = get(id)
            # If it is not in memory it is on disk until its next try; after that time it has ended.
            if (intent is None and again_ms < now_ms) or (intent is not None and intent.status in FINAL):
                del self._held[id]
        return [(tier, since_ms) for tier, since_ms, _ in self._held.values()]

    def wait_ms(self, tier: int) -> Histogram:
        """How long each delivery of a tier, including retries, waited after it was due."""
        found = self.late_ms[tier].total()
        found.merge(self._again_ms[tier])
        return found

    def host_share(self, tier: int) -> int:
        """The number of a tier's permits that one host's callbacks get when no other host wants any."""
        return 0 if self.state is None else self.state.tiers.all[tier].share

    def dead_letters(self) -> int:
        """Intents that became dead letters, ever."""
        return 0 if self.state is None else sum(map(self.state.tally.__getitem__, _DEAD))

    def dead_since(self, since_ms: int) -> int:
        """Intents that became dead letters since this moment, within the last hour, to ten seconds."""
        before = next((dead for at_ms, dead, _ in self._trend if at_ms >= since_ms), None)
        return 0 if before is None else self.dead_letters() - before

    def waiting(self) -> int:
        """The number of intents that are due and could go."""
        return 0 if self.state is None else waiting(self.state)

    def waiting_at(self, since_ms: int) -> int:
        """The number that were waiting at this moment, within the last hour, to ten seconds."""
        return next((count for at_ms, _, count in reversed(self._trend) if at_ms <= since_ms), 0)

    def failed(self, tier: int) -> int:
        """Deliveries of a tier that came back without success."""
        bad = ("failed", "rejected", "lost")
        return sum(
            count for (of, _, outcome), count in self.deliveries.items() if of == tier and outcome in bad
        )


def waiting(state: State) -> int:
    """Due intents that wait for a permit or a worker: not for a limit, an earlier message of their entity, or
    a paused lane."""
    held = state.flow.parked + state.behind_others
    for lane in state.queues.values():
        if lane.paused:
            held += sum(map(len, lane.tracks))
            if lane.name in state.kinds:
                held += state.kinds[lane.name].ready
    return max(0, state.counts[DUE] - held)
