"""Adds the predicted duration to new intents, in lanes ordered by it. Owns sketches and model.

A lane that asks for it gets the model's prediction if the model is in use, otherwise the sketch's; if
nothing is known, there is no prediction, and the order is that of arrival. In a shadow lane the same
predictions are made but only remembered. Lanes that do not ask pay for one look-up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from duetime.clock import Clock
from duetime.engine.predictions.durations import Durations, rebuilt
from duetime.engine.predictions.features import row_of
from duetime.engine.predictions.model import IN_USE, Model
from duetime.engine.shell.inbox import Single
from duetime.kernel.state import State
from duetime.limits import EXPECTED_MS_MAX, PREDICT_REBUILD_ROWS, PREDICT_SLICE
from duetime.protocol.command import LaneSettings, Order
from duetime.protocol.intent import Item
from duetime.protocol.terms import Terms
from duetime.store.store import ReadStore

MODEL, SKETCH, NONE = "model", "sketch", "none"


class Predictor:
    """The predictions for new intents."""

    def __init__(self, clock: Clock, store: ReadStore) -> None:
        self.durations = Durations(clock, store)
        self.model = Model()
        self.told = {MODEL: 0, SKETCH: 0, NONE: 0}
        """Predictions by source; `none`: nothing was known."""
        self._clock = clock
        self._store = store
        self._path: Path | None = None
        self._waiting: dict[int, Callable[[int], None]] = {}
        self._numbers = 0
        self._rebuilding: asyncio.Task[None] | None = None

    # Lifecycle.

    def start(self, state: State) -> None:
        """Recovery is done: learn from what is on disk, and find the lanes that ask for predictions."""
        self._path = self._store.archive().path
        if state.ended and self._path is not None:
            self._rebuilding = asyncio.get_running_loop().create_task(self._rebuild())
        self.look(state.lane_settings)

    async def _rebuild(self) -> None:
        """In a thread with its own connection; if it fails, less is known for a while."""
        archive = self._store.archive()
        try:
            self.durations.take_in(await asyncio.to_thread(rebuilt, archive, PREDICT_REBUILD_ROWS))
        finally:
            archive.close()

    async def rebuilt(self) -> None:
        """Wait until the history on disk was read, successfully or not."""
        if self._rebuilding is not None:
            await asyncio.gather(self._rebuilding, return_exceptions=True)

    def look(self, lanes: Mapping[str, LaneSettings]) -> None:
        """Apply the lanes' current settings."""
        asking = [name for name, settings in lanes.items() if settings.order]
        self.durations.watch(asking)
        if asking:
            self.model.want(self._path)
        else:
            self.model.leave()

    def release(self) -> None:
        """Stop waiting for the model."""
        for told in list(self._waiting.values()):
            told(0)

    async def close(self) -> None:
        self.release()
        self.model.leave()
        await self.model.gone()
        await self.rebuilt()

    # New intents.

    def one(self, order: Order, single: Single, put: Callable[[Single], None]) -> None:
        """Hand in a new intent with its prediction, now or when the model has answered."""

        def tell(expected_ms: int) -> None:
            single.item = replace(single.item, expected_ms=expected_ms)
            put(single)

        if order is Order.SHADOW:
            put(single)
            self._predict(single.terms, single.item, partial(self.durations.guess, single.item.id))
        else:
            self._predict(single.terms, single.item, tell)

    async def many(
        self, lanes: Mapping[str, LaneSettings], terms: tuple[Terms, ...], items: tuple[Item, ...]
    ) -> tuple[Item, ...]:
        """New intents with their predictions, where their lanes ask. The model is asked slice by slice, so
        that other callers are answered in between. If it is too late for one, the sketch is used for the
        rest."""
        orders = [lanes[each.lane].order if each.lane in lanes else Order.FIFO for each in terms]
        if not any(orders):
            return items
        found: list[Item] = []
        late = self.model.late
        for start in range(0, len(items), PREDICT_SLICE):
            part = items[start : start + PREDICT_SLICE]
            found += await self._some(orders, terms, part, ask=self.model.late == late)
        return tuple(found)

    async def _some(
        self, orders: list[Order], terms: tuple[Terms, ...], items: tuple[Item, ...], *, ask: bool
    ) -> list[Item]:
        found, left = list(items), asyncio.get_running_loop().create_future()
        missing = {place for place, item in enumerate(items) if orders[item.terms] is Order.EXPECTED}

        def tell(place: int, expected_ms: int) -> None:
            found[place] = replace(found[place], expected_ms=expected_ms)
            missing.discard(place)
            if not missing and not left.done():
                left.set_result(None)

        for place, item in enumerate(items):
            order = orders[item.terms]
            if order is Order.SHADOW:  # predictions that are only remembered are not awaited
                told = partial(self.durations.guess, item.id)
                self._predict(terms[item.terms], item, told, ask=ask)
            elif order:
                self._predict(terms[item.terms], item, partial(tell, place), ask=ask)
        if missing:
            await left
        return found

    def _predict(self, terms: Terms, item: Item, tell: Callable[[int], None], *, ask: bool = True) -> None:
        """`tell` is called once: now, or when the model has answered or its time is over."""
        model = self.model
        if not ask or model.state is not IN_USE:
            self._tell(terms, 0, tell)
            return
        self._numbers += 1
        number = self._numbers

        def told(expected_ms: int) -> None:
            if self._waiting.pop(number, None) is not None:
                self._tell(terms, expected_ms, tell)

        self._waiting[number] = told
        at_ms = max(item.execute_at_ms, self._clock.now_ms())
        model.ask(row_of(terms, item.payload, at_ms, 1), told)

    def _tell(self, terms: Terms, expected_ms: int, tell: Callable[[int], None]) -> None:
        source = MODEL
        if not expected_ms:
            expected_ms = self.durations.expected_ms(terms)
            source = SKETCH if expected_ms else NONE
        self.told[source] += 1
        tell(min(expected_ms, EXPECTED_MS_MAX))

    # Called by readers.

    def source(self, lane: str) -> str:
        """The current source of a lane's predictions."""
        if self.model.state is IN_USE:
            return MODEL
        sketch = self.durations.lane(lane)
        return NONE if sketch is None or not sketch.count else SKETCH
