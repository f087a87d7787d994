"""Chunks of a large submit: each fits a frame."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from duetime.engine.shell.inbox import item_bytes
from duetime.limits import CHUNK_BYTES_MAX, CHUNK_ITEMS_MAX
from duetime.protocol.intent import Item


class Chunk(Struct, frozen=True):
    """A part of a large submit that fits a frame: its intents, and which of the submit's terms they use."""

    items: tuple[Item, ...]
    """Each with the index of its terms in `terms`."""
    terms: tuple[int, ...]
    bytes: int


def chunks(terms_bytes: Sequence[int], items: tuple[Item, ...]) -> list[Chunk]:
    """Parts of a large submit, in order. The terms that a part uses count as well as its intents."""
    if len(terms_bytes) == 1 and len(items) <= CHUNK_ITEMS_MAX:  # almost always
        whole = sum(map(item_bytes, items)) + terms_bytes[0]
        if whole <= CHUNK_BYTES_MAX:
            return [Chunk(items, (0,), whole)]
    found: list[Chunk] = []
    places: dict[int, int] = {}
    start = size = 0
    for place, item in enumerate(items):
        more = item_bytes(item) + (0 if item.terms in places else terms_bytes[item.terms])
        if place - start >= CHUNK_ITEMS_MAX or (size + more > CHUNK_BYTES_MAX and place > start):
            found.append(_chunk(items[start:place], places, size))
            start, size, places = place, 0, {}
            more = item_bytes(item) + terms_bytes[item.terms]
        places.setdefault(item.terms, len(places))
        size += more
    found.append(_chunk(items[start:], places, size))
    return found


def _chunk(items: tuple[Item, ...], places: dict[int, int], size: int) -> Chunk:
    if any(old != new for old, new in places.items()):
        items = tuple(replace(item, terms=places[item.terms]) for item in items)
    return Chunk(items, tuple(places), size)
