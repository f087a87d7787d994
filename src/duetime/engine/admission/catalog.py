"""Known terms, one object each: prepared once, shared by all their intents.

A task's terms are one object already; a server makes new ones with every request. Terms that are equal on the
log become one object here, so that intents share it in memory and a batch writes it once.
"""

from __future__ import annotations

from msgspec import Struct

from duetime.limits import TERMS_KEPT, TERMS_KEPT_BYTES_MAX
from duetime.protocol.record import encode
from duetime.protocol.terms import Terms


class KnownTerms(Struct, eq=False, gc=False):
    """Terms, with values that need not be computed again for each intent."""

    terms: Terms
    bytes: int
    """Their size on the log."""
    admitted: int = -1
    """The turn in which an intent on these terms was last found to have room."""


class Catalog:
    """Known terms, by object identity and by value."""

    def __init__(self) -> None:
        # An object's address identifies it while the object lives, and the table keeps it alive.
        self._by_object: dict[int, KnownTerms] = {}
        self._by_bytes: dict[bytes, KnownTerms] = {}
        self._bytes = 0

    def find(self, terms: Terms) -> KnownTerms:
        """The entry for these terms; its `terms` are equal to the given ones, and always the same object."""
        known = self._by_object.get(id(terms))
        return known if known is not None else self._look(terms)

    def _look(self, terms: Terms) -> KnownTerms:
        body = encode(terms)
        known = self._by_bytes.get(body)
        if known is None:
            if len(self._by_bytes) >= TERMS_KEPT or self._bytes + len(body) > TERMS_KEPT_BYTES_MAX:
                self._by_bytes.clear()
                self._by_object.clear()
                self._bytes = 0
            self._bytes += len(body)
            known = KnownTerms(terms, len(body))
            self._by_bytes[body] = self._by_object[id(terms)] = known
        return known
