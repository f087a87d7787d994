"""How long deliveries take, by function and by lane: always on, cheap, and rebuilt from history at a start.

A duration is what the engine sees: from the hand-over to the outcome, of those that worked. Of a large batch
of outcomes some are looked at and not all, so that it costs the same however many come; only where a lane's
order is up to predictions everything is noted, for what another order would have gained is told from that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from msgspec import Struct

from duetime.channels.channel import Settler
from duetime.clock import Clock
from duetime.engine.predictions.sketch import Sketch
from duetime.kernel.state import State
from duetime.limits import PREDICT_ENOUGH, PREDICT_FUNCTIONS_MAX, PREDICT_RECENT_MAX
from duetime.ml.features import function_of
from duetime.protocol.intent import DISPATCHING, Intent
from duetime.protocol.outcome import Done, Settlement
from duetime.protocol.terms import Terms
from duetime.store.archive import Archive, queue_of

# Of one batch of outcomes about so many are looked at.
_LOOKED_AT = 32


class Ended(Struct, frozen=True, gc=False):
    """One that ended in a lane whose order is up to predictions."""

    function: str
    due_at_ms: int
    started_at_ms: int
    took_ms: int
    expected_ms: int


class Durations:
    """Sketches of everything that ended."""

    def __init__(self) -> None:
        self.functions: dict[str, Sketch] = {}
        self.lanes: dict[str, Sketch] = {}
        """By queue, as people count them: all entities of a type together."""
        self.watched: dict[str, deque[Ended]] = {}
        """The newest of each lane that is watched."""
        self.guesses: dict[str, int] = {}
        """What was predicted of intents that do not carry it themselves."""
        self._turn = 0
        self._terms: Terms | None = None
        self._both = (Sketch(), Sketch())
        """The sketches of those terms: the next outcome mostly has the same."""

    # What the engine tells.

    def begin(self, state: State, clock: Clock) -> None:
        """Recovery is done; this is the state from now on."""
        self._state, self._clock = state, clock

    def watching(self, settle: Settler) -> Settler:
        """The same way in for outcomes, on which their durations are noted first."""

        def watch(settlements: list[Settlement]) -> None:
            self.settled(settlements)
            settle(settlements)

        return watch

    def settled(self, settlements: list[Settlement]) -> None:
        """Outcomes came back; not yet written, so that the intents still say when they were handed out."""
        get, watched, now_ms = self._state.store.peek, self.watched, self._clock.now_ms()
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
                continue  # stale, or of somebody else
            if intent.terms is not terms:  # those that come together mostly share them
                terms = self._terms = intent.terms
                function, lane = self._both = self._sketches(terms)
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
            recent.append(Ended(name, intent.due_at_ms, intent.dispatched_at_ms, took_ms, expected_ms))

    def watch(self, lanes: Iterable[str]) -> None:
        """From now on these lanes are watched, and no others."""
        kept, self.watched = self.watched, {}
        for lane in lanes:
            found = kept.get(lane)
            self.watched[lane] = deque(maxlen=PREDICT_RECENT_MAX) if found is None else found
        if not self.watched:
            self.guesses.clear()

    def guess(self, id: str, expected_ms: int) -> None:
        """Remember what was predicted of an intent; of too many, the oldest are let go."""
        guesses = self.guesses
        guesses[id] = expected_ms
        if len(guesses) > 8 * PREDICT_RECENT_MAX:
            for old in list(guesses)[: 4 * PREDICT_RECENT_MAX]:
                del guesses[old]

    # What readers ask.

    def expected_ms(self, terms: Terms) -> int:
        """How long one on these terms takes, in the mean: by its function, else by its lane. 0: unknown."""
        for sketch in (self.functions.get(function_of(terms.target)), self.lane(terms.lane)):
            if sketch is not None and sketch.count >= PREDICT_ENOUGH:
                return max(1, round(sketch.mean_ms))
        return 0

    def lane(self, name: str) -> Sketch | None:
        """The durations of a lane."""
        return self.lanes.get(queue_of(name))

    # Keeping them.

    def _sketches(self, terms: Terms) -> tuple[Sketch, Sketch]:
        function = _found(self.functions, function_of(terms.target))
        return function, _found(self.lanes, queue_of(terms.lane))

    def take_in(self, other: Durations) -> None:
        """Add what another one found."""
        self._terms = None  # where there are too many, those it had may be let go
        for mine, more in ((self.functions, other.functions), (self.lanes, other.lanes)):
            for name, sketch in more.items():
                _found(mine, name).merge(sketch)


def rebuilt(archive: Archive, rows: int) -> Durations:
    """What the newest rows on disk say. For a thread: nobody waits for it."""
    found = Durations()
    with archive.moment():
        for intent in archive.finished(rows):
            for sketch in found._sketches(intent.terms):
                sketch.add(intent.finished_at_ms - intent.dispatched_at_ms)
    return found


def _found(sketches: dict[str, Sketch], name: str) -> Sketch:
    """The sketch of this name. When there are too many, the half is let go of which the least is known."""
    sketch = sketches.get(name)
    if sketch is None:
        if len(sketches) >= PREDICT_FUNCTIONS_MAX:
            for least in sorted(sketches, key=lambda each: sketches[each].count)[: len(sketches) // 2]:
                del sketches[least]
        sketch = sketches[name] = Sketch()
    return sketch
