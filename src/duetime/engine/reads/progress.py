"""The progress of running deliveries, as their functions report it. In memory only: a restart forgets it.

Nothing in the processing of an intent reads it. A report belongs to the current delivery, and is valid only
while that runs; ended ones are swept out when the number has doubled since the last sweep.
"""

from __future__ import annotations

from collections.abc import Mapping

from duetime.kernel.state import State
from duetime.protocol.intent import DISPATCHING, Intent
from duetime.protocol.view import Progress
from duetime.store.store import ReadStore

_SWEPT_AT_LEAST = 64


class Progresses:
    """The newest report of each current delivery that has sent one."""

    def __init__(self, store: ReadStore) -> None:
        self._store = store
        self._newest: dict[str, tuple[int, Progress]] = {}
        self._sweep_at = _SWEPT_AT_LEAST

    def __len__(self) -> int:
        return len(self._newest)

    def put(self, state: State, consumer: str, words: Mapping[tuple[str, int], Progress]) -> int:
        """Reports of a consumer (or, without a name, of this process); returns how many were valid."""
        counted = 0
        for (id, delivery), progress in words.items():
            intent = state.out.get(consumer, {}).get(id)
            if intent is not None and intent.delivery == delivery:
                self._newest[id] = (delivery, progress)
                counted += 1
        if len(self._newest) >= self._sweep_at:
            self._sweep()
        return counted

    def of(self, intent: Intent) -> Progress | None:
        if intent.status is not DISPATCHING:
            return None
        delivery, progress = self._newest.get(intent.id, (0, None))
        return progress if delivery == intent.delivery else None

    def _sweep(self) -> None:
        peek = self._store.peek
        self._newest = {
            id: entry
            for id, entry in self._newest.items()
            if (intent := peek(id)) is not None
            and intent.status is DISPATCHING
            and intent.delivery == entry[0]
        }
        self._sweep_at = max(_SWEPT_AT_LEAST, 2 * len(self._newest))
