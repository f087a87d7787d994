"""A function that a worker does not know goes back, less and less often, and in the end is rejected."""

from __future__ import annotations

import asyncio

from duetime.client.worker.unknown_functions import Strangers
from duetime.limits import UNKNOWN_RETURNS_MAX
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Rejected, Snoozed
from duetime.protocol.terms import Entity, Task, Terms

TERMS = Terms(Task("who"), "task:default")


def outcome_of(strangers: Strangers, id: str, delivery: int):
    return asyncio.run(strangers.run(Deliver(id, delivery, 1, TERMS, b"", 0, 0, 0, None, "")))


def test_an_unknown_function_is_snoozed_ten_times_and_then_rejected():
    strangers = Strangers()
    outcomes = [outcome_of(strangers, "a", n) for n in range(UNKNOWN_RETURNS_MAX)]
    assert [each.delay_ms // 1000 for each in outcomes if isinstance(each, Snoozed)] == [
        1, 2, 4, 8, 16, 32, 60, 60, 60, 60,
    ]  # fmt: skip
    last = outcome_of(strangers, "a", 11)
    assert isinstance(last, Rejected) and last.kind == "no-handler" and "'who'" in last.message


def test_each_intent_has_its_own_count():
    strangers = Strangers()
    outcome_of(strangers, "a", 1)
    assert outcome_of(strangers, "b", 1) == outcome_of(Strangers(), "a", 1)


def test_an_unknown_message_is_rejected_at_once_with_the_messages_its_type_takes():
    """The next message of its entity goes on: nothing waits for give-backs."""
    strangers = Strangers({"cart": ["add", "drop"]}.__getitem__)
    terms = Terms(Entity("cart", "7", "ad"), "entity:cart/7")
    outcome = asyncio.run(strangers.run(Deliver("a", 1, 1, terms, b"", 0, 0, 0, None, "")))
    text = "entities of the type 'cart' take no message 'ad': it takes add, drop"
    assert outcome == Rejected("no-handler", text)


def test_a_message_of_an_unknown_type_is_rejected_without_a_repr():
    terms = Terms(Entity("cart", "7", "ad"), "entity:cart/7")
    outcome = asyncio.run(Strangers().run(Deliver("a", 1, 1, terms, b"", 0, 0, 0, None, "")))
    assert isinstance(outcome, Rejected) and "Entity(" not in outcome.message
