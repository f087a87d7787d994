"""What is refused before anything is written: a full engine, a full disk, a lateness bound at risk.

The kernel checks its own limits again when it applies; this is the early no, so that nothing refused is
ever on the log.
"""

from __future__ import annotations

from duetime.engine.catalog import Known
from duetime.engine.options import Options
from duetime.engine.pump import Turn
from duetime.errors import Busy, EntityFull, LaneFull, NoSpace
from duetime.kernel.state import State
from duetime.limits import TIER_NAMES, TIER_WINDOW_MS
from duetime.log.log import Log
from duetime.protocol.effect import Deliver
from duetime.protocol.terms import Terms

# The share of a new lateness in the running mean: about the last fifty deliveries.
_WEIGHT = 0.02
# Turns between two looks at the free space.
_ROOM_EVERY = 256


class Guard:
    """Says no early."""

    def __init__(self, log: Log, state: State, options: Options) -> None:
        self._log = log
        self._state = state
        self._options = options
        self._turns = 0
        self._room: int | None = None
        self.late_ms = [0.0] * len(TIER_NAMES)
        """Each tier's lateness, as a running mean."""

    def admit_one(self, known: Known) -> None:
        """Raise if one more intent on these terms cannot be taken now. The answer holds for a whole turn."""
        if known.admitted != self._turns:
            self.admit((known.terms,), 1)
            known.admitted = self._turns

    def admit(self, terms: tuple[Terms, ...], count: int) -> None:
        """Raise if so many intents cannot be taken now."""
        free = self._room
        if free is not None and free < self._options.disk_reserve_bytes:
            self._look()
            if self._room is not None and self._room < self._options.disk_reserve_bytes:
                raise NoSpace(
                    f"{self._room} bytes are free, and {self._options.disk_reserve_bytes} are kept back"
                    " for finishing what is accepted."
                )
        pending_max = self._state.settings.pending_max
        if self._state.live() + count > pending_max:
            raise Busy(
                f"{self._state.live()} intents are pending; with {count} more it would be over"
                f" the limit of {pending_max}.",
                waitMs=1000,
            )
        for each in terms:
            self._check_lane(each)
            if self._options.lateness_guard:
                self._check_lateness(each)

    def after(self, turn: Turn) -> None:
        """Learn from a turn how late each tier is."""
        if self._options.lateness_guard:
            self._learn(turn)
        if self._turns % _ROOM_EVERY == 0:
            self._look()
        self._turns += 1

    def _check_lane(self, terms: Terms) -> None:
        """A lane that is full now. The kernel counts exactly, item by item, when it applies."""
        state, settings = self._state, self._state.settings
        lane = state.lanes.get(terms.lane)
        if lane is None:
            if state.entities >= settings.entities_max and terms.serial:
                raise EntityFull(f"{state.entities} entities are live, the most there may be.", waitMs=1000)
            return
        limit = settings.entity_pending_max if lane.serial else settings.lane_pending_max
        if lane.pending >= limit:
            kind = EntityFull if lane.serial else LaneFull
            raise kind(f"Lane {terms.lane!r} holds {limit} intents, the most it may.", waitMs=1000)

    def _learn(self, turn: Turn) -> None:
        late_ms = self.late_ms
        for effect in turn.effects:
            if type(effect) is Deliver and effect.attempt == 1:
                tier = effect.terms.tier
                late_ms[tier] += (effect.late_ms - late_ms[tier]) * _WEIGHT

    def _check_lateness(self, terms: Terms) -> None:
        """A tier that is late on average and has work waiting cannot keep its bound for more."""
        tier = terms.tier
        window_ms = TIER_WINDOW_MS[tier]
        if self.late_ms[tier] <= window_ms:
            return
        permits = self._state.tiers.all[tier]
        if not permits.tracks:
            self.late_ms[tier] = 0.0  # nothing waits any more: the past says nothing of the next one
            return
        late = round(self.late_ms[tier])
        raise Busy(
            f"{TIER_NAMES[tier]} is {late} ms late, more than its bound of {window_ms} ms.",
            hint="Wait and send it again, give the tier more permits, or use a lower tier.",
            waitMs=late,
        )

    def _look(self) -> None:
        room = getattr(self._log, "room", None)  # only logs on a disk can run out of it
        self._room = room() if room is not None else None
