"""Items with different terms, to be submitted together."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable

from msgspec.structs import replace

from duetime.client.app.backend import Backend
from duetime.protocol.intent import Item
from duetime.protocol.terms import Terms
from duetime.refusals import Submitted


class ItemBatch:
    """Gives each item the index of its terms."""

    def __init__(self, made: Iterable[tuple[Terms, Item]]) -> None:
        self._items: list[Item] = []
        self._terms: list[Terms] = []
        self._places: dict[int, int] = {}
        for terms, item in made:
            self._add(terms, item)

    def _add(self, terms: Terms, item: Item) -> None:
        place = self._places.setdefault(id(terms), len(self._terms))
        if place == len(self._terms):
            self._terms.append(terms)
        self._items.append(replace(item, terms=place) if place else item)

    def submit(self, backend: Backend) -> Awaitable[list[Submitted]]:
        ack = max(terms.ack for terms in self._terms)
        return backend.submit(tuple(self._terms), tuple(self._items), ack)
