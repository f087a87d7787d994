"""Every bound of a field, at its edge and one past it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from duetime import limits
from duetime.protocol import bounds
from duetime.protocol.command import Cancel, Patch, Revive
from duetime.protocol.first_argument import FirstArgument
from duetime.protocol.intent import Item, Ties
from duetime.protocol.schedule import Schedule
from duetime.protocol.terms import (
    AckLevel,
    Bare,
    Callback,
    Claim,
    Entity,
    Redelivery,
    Stream,
    Task,
    Terms,
    Until,
)

ITEM = Item("a", 0, 1_700_000_000_000)
TERMS = Terms(Task("work"), "task:default")


@pytest.mark.parametrize("id", ["a", "A-b_c.d:9", "x" * limits.ID_CHARS_MAX])
def test_a_good_id(id):
    assert bounds.item(replace(ITEM, id=id)) is None


@pytest.mark.parametrize("id", ["", "a b", "é", "a/b", "a\n", "x" * (limits.ID_CHARS_MAX + 1)])
def test_a_bad_id(id):
    assert "id" in str(bounds.item(replace(ITEM, id=id)))


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({"execute_at_ms": 0}, True),
        ({"execute_at_ms": -1}, False),
        ({"execute_at_ms": limits.TIME_MS_MAX}, True),
        ({"execute_at_ms": limits.TIME_MS_MAX + 1}, False),
        ({"deadline_ms": -1}, False),
        ({"deadline_ms": limits.TIME_MS_MAX + 1}, False),
        ({"key": "k"}, True),
        ({"ties": Ties()}, True),
        ({"ties": Ties(), "key": "k", "after": ("p",)}, True),
        ({"ties": Ties(group="g")}, True),
        ({"ties": Ties(group="g"), "after": ("p",)}, True),
        ({"ties": Ties(group="g"), "key": "k"}, False),
        ({"ties": Ties(group="g", claim=Claim("k", Until.END))}, False),
        ({"ties": Ties(group="g h")}, False),
        ({"ties": Ties(group="g" * (limits.ID_CHARS_MAX + 1))}, False),
        ({"ties": Ties(members=limits.GROUP_MEMBERS_MAX)}, True),
        ({"ties": Ties(members=limits.GROUP_MEMBERS_MAX + 1)}, False),
        ({"ties": Ties(members=-1)}, False),
        ({"ties": Ties(members=1), "after": ("p",)}, False),
        ({"ties": Ties(delay_ms=1), "after": ("p",)}, True),
        ({"ties": Ties(delay_ms=1)}, False),
        ({"ties": Ties(delay_ms=-1), "after": ("p",)}, False),
        ({"ties": Ties(delay_ms=366 * limits.DAY_MS), "after": ("p",)}, False),
        ({"ties": Ties(first=FirstArgument.RESULT), "after": ("p",)}, True),
        ({"ties": Ties(first=FirstArgument.RESULT), "after": ("p",), "payload": b"[[1]]"}, True),
        ({"ties": Ties(first=FirstArgument.RESULT), "after": ("p",), "payload": b"[1]"}, False),
        ({"ties": Ties(first=FirstArgument.RESULT)}, False),
        ({"ties": Ties(first=FirstArgument.RESULT, members=1)}, False),
        ({"ties": Ties(first=FirstArgument.RESULTS, members=limits.HANDED_PARENTS_MAX)}, True),
        ({"ties": Ties(first=FirstArgument.RESULTS, members=limits.HANDED_PARENTS_MAX + 1)}, False),
        ({"key": ""}, False),
        ({"key": "k" * limits.KEY_CHARS_MAX}, True),
        ({"key": "k" * (limits.KEY_CHARS_MAX + 1)}, False),
        ({"after": ("x",) * limits.AFTER_MAX}, True),
        ({"after": ("x",) * (limits.AFTER_MAX + 1)}, False),
        ({"expected_ms": limits.EXPECTED_MS_MAX}, True),
        ({"expected_ms": limits.EXPECTED_MS_MAX + 1}, False),
        ({"expected_ms": -1}, False),
    ],
)
def test_an_item(changes, good):
    assert (bounds.item(replace(ITEM, **changes)) is None) is good


LONG = "n" * (limits.NAME_CHARS_MAX + 1)


@pytest.mark.parametrize(
    ("target", "good"),
    [
        (Task("f", "q"), True),
        (Task("", "q"), False),
        (Task("f", ""), False),
        (Task(LONG), False),
        (Entity("k", "i", "m"), True),
        (Entity("", "i", "m"), False),
        (Entity("k", LONG, "m"), False),
        (Entity("k", "i", ""), False),
        (Stream("s"), True),
        (Stream(LONG), False),
        (Callback("http://x"), True),
        (Callback(""), False),
        (Callback("u" * (limits.URL_CHARS_MAX + 1)), False),
        (Bare(), True),
    ],
)
def test_a_target(target, good):
    assert (bounds.terms(replace(TERMS, target=target)) is None) is good


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({"priority": limits.PRIORITY_MAX}, True),
        ({"priority": -limits.PRIORITY_MAX}, True),
        ({"priority": limits.PRIORITY_MAX + 1}, False),
        ({"priority": -limits.PRIORITY_MAX - 1}, False),
        ({"timeout_ms": 0}, False),
        ({"timeout_ms": 1}, True),
        ({"expires_ms": 1}, True),
        ({"expires_ms": -1}, False),
        ({"expires_ms": 365 * 86_400_000}, True),
        ({"expires_ms": 365 * 86_400_000 + 1}, False),
        ({"lease_ms": limits.RETRY_DELAY_MS_MAX + 1}, False),
        ({"tags": {}}, True),
        ({"tags": {str(n): "v" for n in range(limits.TAGS_MAX)}}, True),
        ({"tags": {str(n): "v" for n in range(limits.TAGS_MAX + 1)}}, False),
        ({"tags": {"": "v"}}, False),
        ({"tags": {"k": "v" * limits.TAG_CHARS_MAX}}, True),
        ({"tags": {"k": "v" * (limits.TAG_CHARS_MAX + 1)}}, False),
        ({"tags": {"k": 1}}, False),
        ({"target": Callback("http://x", body=b"x" * limits.TERMS_BYTES_MAX)}, False),
        ({"fairness_key": "k" * limits.FAIRNESS_KEY_CHARS_MAX, "fairness_weight": 1_000}, True),
        ({"fairness_key": "k" * (limits.FAIRNESS_KEY_CHARS_MAX + 1)}, False),
        ({"fairness_key": ""}, False),
        ({"fairness_key": "k", "fairness_weight": 0}, False),
        ({"fairness_key": "k", "fairness_weight": 1_001}, False),
        ({"fairness_weight": 2}, False),
        ({"fairness_key": "k", "target": Entity("k", "i", "m")}, False),
    ],
)
def test_terms(changes, good):
    assert (bounds.terms(replace(TERMS, **changes)) is None) is good


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, True),
        ({"max_attempts": 0}, False),
        ({"max_attempts": 1}, True),
        ({"max_attempts": limits.ATTEMPTS_MAX + 1}, False),
        ({"initial_delay_ms": -1}, False),
        ({"initial_delay_ms": limits.RETRY_DELAY_MS_MAX + 1}, False),
        ({"max_delay_ms": -1}, False),
        ({"max_delay_ms": limits.RETRY_DELAY_MS_MAX + 1}, False),
        ({"multiplier_percent": 99}, False),
        ({"multiplier_percent": 100}, True),
        ({"multiplier_percent": 100_001}, False),
    ],
)
def test_a_retry_policy(changes, good):
    policy = replace(Redelivery(), **changes)
    assert (bounds.redelivery(policy) is None) is good
    assert (bounds.terms(replace(TERMS, redelivery=policy)) is None) is good


@pytest.mark.parametrize(
    ("command", "good"),
    [
        (Cancel(""), True),
        (Patch("a"), True),
        (Patch("a", payload=b"x" * limits.PAYLOAD_BYTES_MAX), True),
        (Patch("a", payload=b"x" * (limits.PAYLOAD_BYTES_MAX + 1)), False),
        (Patch("a", execute_at_ms=-1), False),
        (Patch("a", deadline_ms=0), True),
        (Patch("a", deadline_ms=limits.TIME_MS_MAX + 1), False),
        (Patch("a", redelivery=Redelivery(max_attempts=0)), False),
        (Patch("a", priority=limits.PRIORITY_MAX), True),
        (Patch("a", priority=-limits.PRIORITY_MAX - 1), False),
        (Patch("a", tags={"": "v"}), False),
        (Revive("a"), True),
        (Revive("a", payload=b"x" * (limits.PAYLOAD_BYTES_MAX + 1)), False),
        (Revive("a", execute_at_ms=limits.TIME_MS_MAX + 1), False),
        (Revive("a", redelivery=Redelivery(max_attempts=0)), False),
        (Revive("a", target=Task("")), False),
        (Revive("a", target=Task("f")), True),
    ],
)
def test_a_command_that_changes_an_intent(command, good):
    assert (bounds.command(command) is None) is good


def test_replicated_is_refused_without_replication():
    """The same sentence for an intent and for what a schedule makes: all doors ask here."""
    terms = replace(TERMS, ack=AckLevel.REPLICATED)
    assert bounds.terms(terms) == bounds.NOT_REPLICATED
    assert bounds.schedule(Schedule("s", terms, every_ms=1_000)) == bounds.NOT_REPLICATED


@pytest.mark.parametrize(("every_ms", "good"), [(999, False), (1_000, True), (366 * limits.DAY_MS, False)])
def test_a_schedule_ticks_once_a_second_at_the_most(every_ms, good):
    schedule = Schedule("s", Terms(Task("t"), "task:default"), every_ms=every_ms)
    assert (bounds.schedule(schedule) is None) is good
