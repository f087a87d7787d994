"""The law of results that are handed over, written again: a step gets those of its dependencies, in order."""

from __future__ import annotations

from random import Random

import msgspec
from msgspec.structs import replace

from duetime.limits import MINUTE_MS
from duetime.protocol.effect import Deliver
from duetime.protocol.first_argument import FirstArgument
from duetime.protocol.intent import Item, Ties
from duetime.protocol.terms import AfterOn, Callback, Terms
from duetime.testing.sim.observed import Seen


def follow(random: Random, item: Item) -> Item:
    """What a caller asks of the dependencies of an intent: a delay, an argument, both or nothing."""
    ties = item.ties if item.ties is not None else Ties()
    if not (item.after or ties.members):
        return item
    choices = [FirstArgument.NONE, FirstArgument.RESULTS, FirstArgument.FAILURE]
    if len(set(item.after)) == 1:  # of several, the last one may be forgotten before the others end
        choices.append(FirstArgument.RESULT)
    first = random.choice(choices)
    delay_ms = random.choice((0, 0, 1, 600, 5_000, MINUTE_MS))
    if not first and not delay_ms:
        return item
    payload = random.choice((b"", b"[[7]]")) if first else item.payload
    return replace(item, ties=replace(ties, delay_ms=delay_ms, first=first), payload=payload)


def branch(random: Random, terms: Terms) -> Terms:
    """Terms of a branch for failures, or of a webhook that wants to know its dependencies."""
    if random.random() < 0.3:
        terms = replace(terms, after_on=AfterOn.FAILURE)
    if isinstance(terms.target, Callback) and random.random() < 0.5:
        terms = replace(terms, target=replace(terms.target, parents=True))
    return terms


def check_delivery(seen: Seen, effect: Deliver) -> None:
    """A delivery carries what its intent got when it was released."""
    given = seen.given
    if given is None:
        return
    if effect.parents is not None:
        found = msgspec.json.decode(b"{%b}" % effect.parents)
        ids = [each["intentId"] for each in found["parents"]]
        assert ids == [id for id, _ in given], f"{seen.id!r} got {ids} for {given}"
    elif seen.first and not isinstance(effect.terms.target, Callback) and effect.payload.startswith(b"[["):
        first = msgspec.json.decode(effect.payload)[0][0]
        match seen.first:
            case FirstArgument.RESULT:
                assert first == given[-1][1], f"{seen.id!r} got {first!r} for {given[-1]}"
            case FirstArgument.RESULTS:  # an old result may be forgotten
                pairs = zip(first, given, strict=True)
                assert all(each in (None, result) for each, (_, result) in pairs), f"{seen.id!r} got {first}"
            case _:
                failed = None if first is None else first["intentId"]
                forgotten = failed is None and seen.after_on is not AfterOn.FAILURE
                assert failed in seen.failed or forgotten, f"{seen.id!r} got {failed!r}"
