"""The law of claims, written again: one holder of a unique key, one waiting intent of a collapse key, and the
newest wins. All former holders of a key are remembered, and checked whenever an intent takes the key."""

from __future__ import annotations

from random import Random

from duetime.limits import HOUR_MS, MINUTE_MS
from duetime.protocol.command import Command, Submit
from duetime.protocol.intent import FINAL, Intent, Item, Ties
from duetime.protocol.reply import Existing, Reason, Refusal, Reply
from duetime.protocol.terms import Claim, OnDuplicate, Until
from duetime.testing.sim.observed import Seen


def ties(random: Random) -> Ties:
    """A claim of a caller, with one of a few keys."""
    until = random.choice(list(Until))
    for_ms = random.choice((1, 700, 20_000, MINUTE_MS, 2 * HOUR_MS)) if until is Until.TIME else 0
    return Ties(Claim(f"c{random.randint(0, 3)}", until, for_ms))


class ClaimLaw:
    """The holders of each key."""

    def __init__(self) -> None:
        self._had: dict[tuple[bool, str], list[Seen]] = {}
        self._replaced: Seen | None = None
        """The intent that was cancelled just now to be replaced by another."""

    def said(self, item: Item, reply: Reply, twins: list[Seen], seen: dict[str, Seen], at_ms: int) -> bool:
        """Whether this answer follows from another intent's unique key, not from the idempotency key."""
        claim = claim_of(item)
        if claim is None or claim.collapses:
            return False
        if isinstance(reply, Refusal) and reply.reason is Reason.KEY_HELD:
            id = reply.details["intentId"]
            assert isinstance(id, str) and item.on_duplicate is OnDuplicate.REJECT
        elif isinstance(reply, Existing) and all(twin.id != reply.intent.id for twin in twins):
            id = reply.intent.id
        else:
            return False
        holder = seen.get(id)
        theirs = holder.claim if holder is not None else None
        if holder is None or theirs is None or _kind(theirs) != _kind(claim):
            return False
        if theirs.until is Until.TIME:
            over_ms = at_ms - holder.created_at_ms - theirs.for_ms
            assert over_ms < 0, f"{id!r} has had {claim.key!r} no more for {over_ms} ms"
        else:
            assert _has(holder), f"{id!r} is {holder.status} and does not have {claim.key!r}"
        return True

    def taken(self, seen: Seen, intent: Intent | None, at_ms: int, mark_ms: int) -> None:
        """An intent was created, or revived: it holds its key, and no other intent does."""
        claim, replaced = seen.claim, self._replaced
        self._replaced = None
        if replaced is not None and replaced.claim is not None:
            same = claim is not None and _kind(claim) == _kind(replaced.claim)
            assert same, f"{seen.id!r} took the place of {replaced.id!r}, which has another key"
        if claim is None:
            return
        takes = seen.status is None or _has(seen)
        had = self._had.setdefault(_kind(claim), [])
        for other in had:
            if other is seen or other.claim is None:
                continue
            if other.claim.until is not Until.TIME:
                assert not (takes and _has(other)), f"{other.id!r} and {seen.id!r} have {claim.key!r}"
            elif seen.status is None and not (other.status in FINAL and other.created_at_ms < mark_ms):
                left_ms = other.created_at_ms + other.claim.for_ms - at_ms
                assert left_ms <= 0, (
                    f"{other.id!r} has {claim.key!r} for {left_ms} ms, and {seen.id!r} took it"
                )
        if seen.status is None:
            had.append(seen)
            assert intent is not None, f"{seen.id!r} was made and is not there"
            if claim.until is Until.THROTTLE and replaced is not None:
                seen.execute_at_ms = replaced.execute_at_ms
            if not seen.delay_ms:  # which may be added in the same record
                same_time = intent.execute_at_ms == seen.execute_at_ms
                assert same_time, f"{seen.id!r} has another time than it should"

    def replaced(self, seen: Seen, command: Command) -> bool:
        """Whether an intent was cancelled because another one replaced it."""
        if not isinstance(command, Submit):
            return False
        taker = seen.claim is not None and any(
            claim is not None and claim.collapses and _kind(claim) == _kind(seen.claim)
            for claim in map(claim_of, command.items)
        )
        assert taker and not seen.delivery, f"{seen.id!r} was cancelled, and nobody took its place"
        self._replaced = seen
        return True

    def purged(self, seen: Seen) -> None:
        """A dead letter was purged, and its key with it."""
        if seen.claim is not None:
            self._had[_kind(seen.claim)].remove(seen)

    def newest_wins(self) -> None:
        """After a record: no intent was cancelled for another that was then not created."""
        assert self._replaced is None, "somebody was cancelled for the sake of nobody"


def claim_of(item: Item) -> Claim | None:
    return item.ties.claim if item.ties is not None else None


def _kind(claim: Claim) -> tuple[bool, str]:
    return claim.collapses, claim.key


def _has(seen: Seen) -> bool:
    """Whether it holds its key, as far as its life shows."""
    assert seen.claim is not None
    if seen.claim.until is Until.TIME:
        return False
    return seen.status not in FINAL and (seen.claim.until is Until.END or not seen.delivery)
