"""The intents in memory that may hold a claim, by its name: the part of an index that is newer than the
disk."""

from __future__ import annotations

from bisect import bisect_left

from duetime.protocol.checkpoint import Marks
from duetime.protocol.intent import Intent
from duetime.store.store import claim_of, forgotten


class Claims:
    """By name, the intents that were added or touched with this claim, in the order of their seqs. Intents
    that gave the claim up stay listed until the next look-up."""

    def __init__(self) -> None:
        self._found: dict[str, list[Intent]] = {}

    def note(self, intent: Intent) -> None:
        """This intent may hold its claim from now on."""
        name = _name(intent)
        if name is None:
            return
        found = self._found.setdefault(name, [])
        if not found or found[-1].seq < intent.seq:
            found.append(intent)
            return
        place = bisect_left(found, intent.seq, key=_seq)
        if found[place].seq != intent.seq:
            found.insert(place, intent)

    def drop(self, intent: Intent) -> None:
        """This intent is no longer in memory."""
        name = _name(intent)
        if name is None or name not in self._found:
            return
        found = self._found[name]
        place = bisect_left(found, intent.seq, key=_seq)
        if place < len(found) and found[place].seq == intent.seq:
            del found[place]
        if not found:
            del self._found[name]

    def newest(self, name: str, marks: Marks) -> Intent | None:
        """The newest intent that holds this claim now and is not forgotten."""
        found = self._found.get(name)
        while found:
            intent = found[-1]
            if claim_of(intent) == name and not forgotten(intent, marks):
                return intent
            found.pop()  # for good, unless it is touched again
        self._found.pop(name, None)
        return None


def _seq(intent: Intent) -> int:
    return intent.seq


def _name(intent: Intent) -> str | None:
    """The claim it was created with, whether it still holds it or not."""
    rare = intent.rare
    if rare is None or rare.ties is None or rare.ties.claim is None:
        return None
    return rare.ties.claim.name
