"""Durations of deliveries, by function and by lane: always measured, cheap, rebuilt from history at startup.

A duration is the time from delivery to outcome, of successful deliveries. Of a large batch of outcomes only a
sample is examined, so that the cost does not grow with the batch. Only in lanes ordered by predictions are
all recorded, because the gain of another order is computed from them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from msgspec import Struct, field

from duetime.clock import Clock
from duetime.engine.predictions.features import function_of
from duetime.engine.predictions.sketch import Sketch
from duetime.limits import PREDICT_ENOUGH, PREDICT_FUNCTIONS_MAX, PREDICT_RECENT_MAX
from duetime.protocol.intent import DISPATCHING, Intent
from duetime.protocol.outcome import Done, Settlement
from duetime.protocol.terms import Terms
from duetime.store.archive import Archive, queue_of
from duetime.store.store import ReadStore

# The approximate sample size of one batch of outcomes.
_LOOKED_AT = 32


class EndedRun(Struct, frozen=True, gc=False):
    """An intent that ended in a lane ordered by predictions."""

    function: str
    due_at_ms: int
    started_at_ms: int
    took_ms: int
    expected_ms: int


class Sketches(Struct):
    """The durations of functions and lanes."""

    functions: dict[str, Sketch] = field(default_factory=dict)
    lanes: dict[str, Sketch] = field(default_factory=dict)
    """By queue as shown to users: all entities of a type are one queue."""

    def of(self, terms: Terms) -> tuple[Sketch, Sketch]:
        """The sketches of the function and the lane, created if missing."""
        return _found(self.functions, function_of(terms.target)), _found(self.lanes, queue_of(terms.lane))

    def merge(self, other: Sketches) -> None:
        for mine, more in ((self.functions, other.functions), (self.lanes, other.lanes)):
            for name, sketch in more.items():
                _found(mine, name).merge(sketch)


class Durations:
    """Sketches of everything that ended."""

    def __init__(self, clock: Clock, store: ReadStore) -> None:
        self._clock = clock
        self._store = store
        self._sketches = Sketches()
        self.functions, self.lanes = self._sketches.functions, self._sketches.lanes
        self.watched: dict[str, deque[EndedRun]] = {}
        """The newest ended intents of each watched lane."""
        self.guesses: dict[str, int] = {}
        """Predictions for intents that do not carry them on their record."""
        self._turn = 0
        self._terms: Terms | None = None
        self._both = (Sketch(), Sketch())
        """The sketches of those terms: the next outcome mostly has the same."""

    # Called by the engine.

    def settled(self, settlements: list[Settlement]) -> None:
        """Outcomes came back; not yet written, so that the intents still have the time of their hand-over."""
        get, watched, now_ms = self._store.peek, self.watched, self._clock.now_ms()
        if not watched and len(settlements) > _LOOKED_AT:
            stride = 1 + len(settlements) // _LOOKED_AT
            self._turn += 1
            settlements = settlements[self._turn % stride :: stride]
        terms, (function, lane) = self._terms, self._both
        for settlement in settlements:
            if type(settlement.outcome) is not Done:
                continue
            intent = get(settlement.id)
            if (
                intent is None
                or intent.status is not DISPATCHING
                or intent.delivery != settlement.delivery
                or intent.consumer != settlement.consumer
            ):
                continue  # stale, or of another consumer
            if intent.terms is not terms:  # outcomes that come together mostly share them
                terms = self._terms = intent.terms
                function, lane = self._both = self._sketches.of(terms)
            took_ms = now_ms - intent.dispatched_at_ms
            function.add(took_ms)
            lane.add(took_ms)
            if watched:
                self._note(intent, took_ms)

    def _note(self, intent: Intent, took_ms: int) -> None:
        guess_ms = self.guesses.pop(intent.id, 0)
        recent = self.watched.get(intent.terms.lane)
        if recent is not None:
            name, expected_ms = function_of(intent.terms.target), intent.expected_ms or guess_ms
            recent.append(EndedRun(name, intent.due_at_ms, intent.dispatched_at_ms, took_ms, expected_ms))

    def watch(self, lanes: Iterable[str]) -> None:
        """Watch these lanes from now on, and no others."""
        kept, self.watched = self.watched, {}
        for lane in lanes:
            found = kept.get(lane)
            self.watched[lane] = deque(maxlen=PREDICT_RECENT_MAX) if found is None else found
        if not self.watched:
            self.guesses.clear()

    def guess(self, id: str, expected_ms: int) -> None:
        """Remember the prediction for an intent; beyond the limit, the oldest are dropped."""
        guesses = self.guesses
        guesses[id] = expected_ms
        if len(guesses) > 8 * PREDICT_RECENT_MAX:
            for old in list(guesses)[: 4 * PREDICT_RECENT_MAX]:
                del guesses[old]

    # Called by readers.

    def expected_ms(self, terms: Terms) -> int:
        """The mean duration on these terms: by function, otherwise by lane. 0: unknown."""
        for sketch in (self.functions.get(function_of(terms.target)), self.lane(terms.lane)):
            if sketch is not None and sketch.count >= PREDICT_ENOUGH:
                return max(1, round(sketch.mean_ms))
        return 0

    def lane(self, name: str) -> Sketch | None:
        """The durations of a lane."""
        return self.lanes.get(queue_of(name))

    # Storage.

    def take_in(self, sketches: Sketches) -> None:
        """Add the durations of earlier runs."""
        self._terms = None  # if there are too many, its sketches may be dropped
        self._sketches.merge(sketches)


def rebuilt(archive: Archive, rows: int) -> Sketches:
    """The durations of the newest rows on disk. Runs in a thread: nothing waits for it."""
    found = Sketches()
    with archive.moment():
        for intent in archive.finished(rows):
            for sketch in found.of(intent.terms):
                sketch.add(intent.finished_at_ms - intent.dispatched_at_ms)
    return found


def _found(sketches: dict[str, Sketch], name: str) -> Sketch:
    """The sketch of this name. When there are too many, the half with the fewest values is dropped."""
    sketch = sketches.get(name)
    if sketch is None:
        if len(sketches) >= PREDICT_FUNCTIONS_MAX:
            for least in sorted(sketches, key=lambda each: sketches[each].count)[: len(sketches) // 2]:
                del sketches[least]
        sketch = sketches[name] = Sketch()
    return sketch
