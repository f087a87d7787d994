"""A callback with `on_end`: an end without success is told by an intent of its own."""

from __future__ import annotations

import msgspec
import pytest

from duetime.kernel.invariants import check
from duetime.limits import ID_CHARS_MAX
from duetime.protocol.command import Cancel, Revive
from duetime.protocol.outcome import Done, Expired, Rejected
from duetime.protocol.terms import Callback
from tests.unit.kernel.bench import Bench, delivered, terms

URL = "http://shop/ended"
CALL = terms(Callback("http://shop/hook", on_end=URL, headers={"a": "b"}), tags={"customer": "ada"})


def told(bench, effects):
    """What was told about ends: the ids, and the payloads."""
    check(bench.state)
    found = [bench.intent(id) for id in delivered(effects)]
    ends = [each for each in found if each.terms.target == Callback(URL)]
    return [(each.id.rpartition(".")[0], msgspec.json.decode(each.payload)) for each in ends]


@pytest.mark.parametrize(
    ("outcome", "status", "reason"),
    [
        (Rejected("bad", "no such order"), "DEAD_LETTERED", "no such order"),
        (Expired("late"), "EXPIRED", "late"),
    ],
)
def test_a_final_failure_is_told(outcome, status, reason):
    bench = Bench()
    bench.submit("order", on=CALL)
    assert told(bench, bench.settle("order", outcome)) == [
        ("order", {"intentId": "order", "status": status, "reason": reason})
    ]


def test_a_cancel_is_told_whether_it_waits_or_runs():
    bench = Bench()
    bench.submit("now", on=CALL)
    bench.submit("later", on=CALL, delay=60_000)
    for id in ("now", "later"):
        body = {"intentId": id, "status": "CANCELED", "reason": ""}
        assert told(bench, bench.do(Cancel(id))) == [(id, body)]


def test_the_webhook_about_an_end_has_the_tier_and_the_tags():
    bench = Bench()
    bench.submit("order", on=CALL)
    (id,) = delivered(bench.do(Cancel("order")))
    found = bench.intent(id).terms
    assert (found.tier, found.tags, found.lane) == (CALL.tier, {"customer": "ada"}, "callback:shop")


def test_success_is_not_told():
    bench = Bench()
    bench.submit("order", on=CALL)
    assert delivered(bench.settle("order", Done())) == []


def test_each_end_is_told_also_after_a_revival():
    bench = Bench()
    bench.submit("order", on=CALL)
    bench.settle("order", Rejected("bad", "first"))
    bench.do(Revive("order"))
    (end,) = told(bench, bench.settle("order", Rejected("bad", "second")))
    assert end[1]["reason"] == "second"


def test_an_id_in_use_is_not_taken():
    bench = Bench()
    long = "x" * ID_CHARS_MAX
    bench.submit(long, on=CALL)
    (id,) = delivered(bench.do(Cancel(long)))
    assert len(id) <= ID_CHARS_MAX
    other = Bench()
    other.submit(long, on=CALL)
    other.submit(id)
    (next_id,) = delivered(other.do(Cancel(long)))
    assert next_id != id and next_id.rpartition(".")[0] == id.rpartition(".")[0]
