"""How far running deliveries are, as their functions say. Kept in memory only: a restart forgets it.

Nothing on the way of an intent looks in here. What is said goes by the delivery that is out, and counts only
as long as it is; what ended is swept out when as many have come again as were left the last time.
"""

from __future__ import annotations

from collections.abc import Mapping

from duetime.kernel.state import State
from duetime.protocol.intent import DISPATCHING, Intent
from duetime.protocol.view import Progress

_SWEPT_AT_LEAST = 64


class Progresses:
    """The newest word of each delivery that is out and has said one."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, Progress]] = {}
        self._sweep_at = _SWEPT_AT_LEAST

    def __len__(self) -> int:
        return len(self._newest)

    def put(self, state: State, consumer: str, words: Mapping[tuple[str, int], Progress]) -> int:
        """What a consumer (or, without a name, this process) says; gives how many of them counted."""
        counted = 0
        for (id, delivery), progress in words.items():
            intent = state.out.get(consumer, {}).get(id)
            if intent is not None and intent.delivery == delivery:
                self._newest[id] = (delivery, progress)
                counted += 1
        if len(self._newest) >= self._sweep_at:
            self._sweep(state)
        return counted

    def of(self, intent: Intent) -> Progress | None:
        if intent.status is not DISPATCHING:
            return None
        delivery, progress = self._newest.get(intent.id, (0, None))
        return progress if delivery == intent.delivery else None

    def _sweep(self, state: State) -> None:
        peek = state.store.peek
        self._newest = {
            id: entry
            for id, entry in self._newest.items()
            if (intent := peek(id)) is not None
            and intent.status is DISPATCHING
            and intent.delivery == entry[0]
        }
        self._sweep_at = max(_SWEPT_AT_LEAST, 2 * len(self._newest))
