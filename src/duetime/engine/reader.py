"""What may be asked without changing anything: views of the state as it is now."""

from __future__ import annotations

from duetime.kernel import query
from duetime.kernel.history import entries_of
from duetime.kernel.kernel import Kernel
from duetime.protocol.intent import Entry, Intent, Status
from duetime.protocol.view import LaneView, Overview, View, Why


class Reader:
    """Reads a kernel. Whoever inherits gives the kernel, or raises why there is none."""

    def now_ms(self) -> int:
        raise AssertionError("the engine has the clock")

    def _kernel(self) -> Kernel:
        raise AssertionError("the engine has the kernel")

    def intent(self, id: str) -> Intent | None:
        """The living object, to be read before anything is awaited and never to be changed."""
        return self._kernel().state.store.get(id)

    def get(self, id: str) -> View | None:
        intent = self._kernel().state.store.get(id)
        return None if intent is None else query.view(intent)

    def why(self, id: str) -> Why | None:
        state = self._kernel().state
        intent = state.store.get(id)
        return None if intent is None else query.why(state, intent, self.now_ms())

    def history(self, id: str) -> list[Entry] | None:
        intent = self._kernel().state.store.get(id)
        return None if intent is None else entries_of(intent)

    def overview(self) -> Overview:
        kernel = self._kernel()
        return query.overview(kernel.state, kernel.next_ms())

    def lanes(self) -> list[LaneView]:
        return [query.lane_view(lane) for lane in self._kernel().state.lanes.values()]

    def page(
        self, statuses: tuple[Status, ...] | None, lane: str | None, before_seq: int, limit: int
    ) -> list[View]:
        found = self._kernel().state.store.page(statuses, lane, before_seq, limit)
        return [query.view(intent) for intent in found]
