"""Terms that were seen before, by one object each: made ready once, shared by all their intents.

A task's terms are one object already; a server makes new ones with every request. What is equal on the log
is made one here, so that intents share it in memory and a batch writes it once.
"""

from __future__ import annotations

from msgspec import Struct

from duetime.protocol.record import encode
from duetime.protocol.terms import Terms

# A table of this size is made anew when it is full: who uses it finds its terms again at once.
_KEPT = 4_096
# Some terms carry a whole callback's body: what the table holds is bounded, too.
_BYTES_MAX = 16 * 1024 * 1024


class Known(Struct, eq=False, gc=False):
    """Terms, and what need not be found out again for each intent."""

    terms: Terms
    bytes: int
    """What they take on the log."""
    admitted: int = -1
    """The turn in which an intent on these terms was last found to have room."""


class Catalog:
    """Known terms, by object and by what they say."""

    def __init__(self) -> None:
        # An object's address names it as long as it lives, and what is in the table lives.
        self._by_object: dict[int, Known] = {}
        self._by_bytes: dict[bytes, Known] = {}
        self._bytes = 0

    def find(self, terms: Terms) -> Known:
        """What is known of these terms; its `terms` are equal to the given ones, and always the same."""
        known = self._by_object.get(id(terms))
        return known if known is not None else self._look(terms)

    def _look(self, terms: Terms) -> Known:
        body = encode(terms)
        known = self._by_bytes.get(body)
        if known is None:
            if len(self._by_bytes) >= _KEPT or self._bytes + len(body) > _BYTES_MAX:
                self._by_bytes.clear()
                self._by_object.clear()
                self._bytes = 0
            self._bytes += len(body)
            known = Known(terms, len(body))
            self._by_bytes[body] = self._by_object[id(terms)] = known
        return known
