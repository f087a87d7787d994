"""Reads without side effects: views of the current state."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from duetime.clock import Clock
from duetime.engine.phase import Phase
from duetime.engine.predictions.durations import Durations
from duetime.engine.predictions.eta import with_eta
from duetime.engine.reads.progress import Progresses
from duetime.engine.reads.tally import Tally
from duetime.kernel import query
from duetime.kernel.history import entries_of
from duetime.kernel.kernel import Kernel
from duetime.kernel.queues.lanes import Lane
from duetime.kernel.state import State
from duetime.limits import DELIVERIES_BYTES_MAX
from duetime.protocol.checkpoint import Marks
from duetime.protocol.command import LaneSettings
from duetime.protocol.intent import Entry, Intent
from duetime.protocol.view import LaneView, Overview, Parent, View, Why, view_of


class Reader:
    """Reads the kernel of an engine. Most reads raise the reason if the engine does not run."""

    def __init__(
        self, kernel: Kernel, phase: Phase, clock: Clock, progress: Progresses, durations: Durations
    ) -> None:
        self._kernel = kernel
        self._last = kernel.state
        """Also read after the engine failed or closed: by connections, while they end."""
        self._phase = phase
        self._now_ms = clock.now_ms
        self._progress = progress
        self._durations = durations

    def _state(self) -> State:
        self._phase.check()
        return self._last

    def intent(self, id: str) -> Intent | None:
        """The live object. Read it before the next await, and never change it."""
        return self._state().store.get(id)

    def get(self, id: str) -> View | None:
        intent = self._state().store.get(id)
        if intent is None:
            return None
        view, progress = view_of(intent, self._now_ms()), self._progress.of(intent)
        return view if progress is None else replace(view, progress=progress)

    def log(self, id: str) -> str | None:
        """The log output of the newest attempt; may be empty."""
        intent = self._state().store.get(id)
        return None if intent is None or intent.rare is None else intent.rare.log

    def why(self, id: str) -> Why | None:
        state = self._state()
        intent = state.store.get(id)
        if intent is None:
            return None
        why = query.why(state, intent, self._now_ms())
        return with_eta(why, state, intent, self._durations)

    def history(self, id: str) -> list[Entry] | None:
        intent = self._state().store.get(id)
        return None if intent is None else entries_of(intent)

    def parents(self, id: str, first: int, limit: int) -> list[Parent] | None:
        """How its parents, or the members of its group, ended; fewer if results are large."""
        state = self._state()
        intent = state.store.get(id)
        if intent is None:
            return None
        return query.parents(state, intent, first, limit, DELIVERIES_BYTES_MAX, self._now_ms())

    def overview(self) -> Overview:
        return query.overview(self._state(), self._kernel.next_ms())

    def tally(self) -> Tally:
        """The transitions of all intents so far, by tier and status."""
        return Tally(self._state().tally)

    def marks(self) -> Marks:
        """Up to where retention has forgotten ended intents."""
        return self._state().marks

    def next_ms(self) -> int | None:
        """When something is due next; None: nothing waits for a time."""
        self._phase.check()
        return self._kernel.next_ms()

    # Consumers. The mappings are live: read them before the next await, and never change them.

    def held(self, consumer: str) -> Mapping[str, Intent]:
        """The deliveries a consumer has and has not settled, by id of the intent."""
        return self._last.out.get(consumer, {})

    def credits(self, consumer: str) -> Mapping[str, int]:
        """How many more deliveries a consumer takes now, by lane."""
        found = self._last.consumers.get(consumer)
        return found.credits if found is not None else {}

    def is_draining(self) -> bool:
        """Whether no more deliveries are handed out."""
        return self._last.draining

    # Lanes.

    def has_ready(self, name: str) -> bool:
        """Whether a consumer of this lane, or of all entities of a type, could get a delivery now. False for
        a lane with a limit: the limit may be what holds its deliveries back."""
        state = self._last
        lane = state.lanes.get(name)
        if lane is not None and (lane.paused or lane.limit is not None):
            return False
        kind = state.kinds.get(name)
        if kind is not None:
            return any(track.head() is not None for track in kind.tracks)
        return lane is not None and any(track.head() is not None for track in lane.tracks)

    def ready_entities(self) -> dict[str, int]:
        """For each type of entities that workers pull and that is not paused, how many entities have a ready
        message; types without any are omitted."""
        state = self._last
        if "entity" in state.settings.pushed:
            return {}
        return {
            name: ready
            for name, kind in sorted(state.kinds.items())
            if (ready := sum(track.head() is not None for track in kind.tracks))
            and not ((lane := state.lanes.get(name)) is not None and lane.paused)
        }

    def lane_names(self, *, entities: bool) -> list[list[str]]:
        """Lanes that hold intents, are asked for, are paused, or have settings of their own, in no order; a
        name may be in several of the lists. `entities`: also those of single entities."""
        state = self._state()
        if entities:
            return [list(state.lanes), list(state.waiting), list(state.lane_settings)]
        settled = [name for name in state.lane_settings if not name.startswith("entity:")]
        return [list(state.queues), settled]

    def lane(self, name: str) -> LaneView:
        """One lane in numbers, also if it is empty."""
        state = self._state()
        kind = name.partition(":")[0]
        lane = state.lanes.get(name)
        if lane is None:
            lane = Lane(name, serial=kind == "entity", pushed=kind in state.settings.pushed)
        return query.lane_view(lane, state.waiting.get(name, 0))

    def settled_lanes(self) -> Mapping[str, LaneSettings]:
        """Lanes with settings of their own. Read only."""
        return self._state().lane_settings

    def lane_settings(self, name: str) -> LaneSettings:
        return self._state().lane_settings.get(name, LaneSettings())

    def lanes(self) -> list[LaneView]:
        state = self._state()
        return [query.lane_view(lane, state.waiting.get(name, 0)) for name, lane in state.lanes.items()]
