"""A request that names itself is done once, however often it is sent."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from duetime.kernel.kernel import Applied
from duetime.protocol.command import Cancel, FireNow, Patch, Purge, Revive, Submit
from duetime.protocol.intent import Intent, Item
from duetime.protocol.outcome import Rejected
from duetime.protocol.reply import Existing, Refusal, Reply
from tests.unit.kernel.bench import T0, Bench, replies, terms

HOUR_MS = 3_600_000


def one(applied: Applied) -> Reply:
    return replies(applied)[0]


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (Cancel("x", request="r"), Cancel("x", request="r")),
        (FireNow("x", request="r"), FireNow("x", request="r")),
        (Patch("x", priority=5, request="r"), Patch("x", revision=1, priority=5, request="r")),
    ],
)
def test_a_change_is_made_once(first, again):
    bench = Bench()
    bench.submit("x", delay=HOUR_MS)
    assert isinstance(bench.do(first).answer, Intent)
    revision = bench.intent("x").revision
    assert isinstance(bench.do(again).answer, Existing)
    assert bench.intent("x").revision == revision


def test_a_dead_letter_is_revived_once():
    bench = Bench()
    bench.submit("x")
    bench.settle("x", Rejected("bad", "no"))
    assert isinstance(bench.do(Revive("x", request="r")).answer, Intent)
    bench.settle("x", Rejected("bad", "no"))
    assert isinstance(bench.do(Revive("x", request="r")).answer, Existing)
    assert bench.intent("x").status.name == "DEAD_LETTERED"


def test_another_request_is_another_change():
    bench = Bench()
    bench.submit("x", delay=HOUR_MS)
    bench.do(Patch("x", priority=1, request="a"))
    assert isinstance(bench.do(Patch("x", priority=2, request="b")).answer, Intent)


def test_only_the_newest_requests_are_remembered():
    bench = Bench()
    bench.submit("x", delay=HOUR_MS)
    for number in range(12):
        bench.do(Patch("x", priority=number, request=f"r{number}"))
    rare = bench.intent("x").rare
    assert rare is not None and rare.requests == tuple(f"r{number}" for number in range(4, 12))


def test_an_intent_is_made_once():
    bench = Bench()
    item = Item("x", 0, T0 + HOUR_MS, request="r")
    assert isinstance(one(bench.do(Submit((terms(),), (item,)))), Intent)
    again = one(bench.do(Submit((terms(),), (item,))))
    assert isinstance(again, Existing) and again.intent.id == "x"
    other = one(bench.do(Submit((terms(),), (Item("x", 0, T0 + HOUR_MS, request="s"),))))
    assert isinstance(other, Refusal) and other.reason.value == "IdExists"


def test_the_name_of_a_request_is_not_borrowed():
    bench = Bench()
    item = Item("x", 0, T0 + HOUR_MS, fingerprint=7, request="r")
    bench.do(Submit((terms(),), (item,)))
    assert isinstance(one(bench.do(Submit((terms(),), (item,)))), Existing)
    other = one(bench.do(Submit((terms(),), (replace(item, fingerprint=8),))))
    assert isinstance(other, Refusal) and other.reason.value == "KeyReused"
    unknown = one(bench.do(Submit((terms(),), (replace(item, fingerprint=0),))))
    assert isinstance(unknown, Existing)


def test_a_repeated_request_gets_its_intent_even_if_its_key_is_finished():
    bench = Bench()
    item = Item("x", 0, T0, key="k", fingerprint=7, request="r")
    bench.do(Submit((terms(),), (item,)))
    bench.done("x")
    assert isinstance(one(bench.do(Submit((terms(),), (item,)))), Existing)
    other = one(bench.do(Submit((terms(),), (replace(item, request="s"),))))
    assert isinstance(other, Refusal) and other.reason.value == "KeyFinished"


def test_purged_dead_letters_are_gone_and_free_their_key():
    bench = Bench()
    bench.do(Submit((terms(),), (Item("x", 0, T0, key="k", fingerprint=1),)))
    bench.submit("lives", delay=HOUR_MS)
    bench.settle("x", Rejected("bad", "no"))
    gone, missing, alive = replies(bench.do(Purge(("x", "nobody", "lives"))))
    assert isinstance(gone, Intent)
    assert isinstance(missing, Refusal) and missing.reason.value == "NoSuchIntent"
    assert isinstance(alive, Refusal) and alive.reason.value == "NotDeadLettered"
    assert bench.store.get("x") is None and bench.store.by_key("k") is None
    made = one(bench.do(Submit((terms(),), (Item("x", 0, T0, key="k", fingerprint=2),))))
    assert isinstance(made, Intent)
