"""Callbacks share permits: batched ones by the pack, and no host takes all of a tier."""

from __future__ import annotations

from typing import Any

from duetime.kernel import invariants, query
from duetime.protocol.command import Configure, Resize, Settings
from duetime.protocol.outcome import Expired
from duetime.protocol.terms import Callback, ExpiredAction, Terms
from tests.unit.kernel.bench import T0, Bench, delivered, terms

STANDARD, ECONOMY = 3, 4


def to(host: str, *, batch: bool = False, **more: Any) -> Terms:
    return terms(Callback(f"http://{host}/hook", batch=batch), **more)


def sized(permits: int, **settings: Any) -> Bench:
    bench = Bench(**settings)
    for tier in range(5):
        bench.do(Resize(tier, permits if tier == STANDARD else 1))
    return bench


def many(bench: Bench, name: str, count: int, on: Terms) -> list[str]:
    return delivered(bench.submit(*(f"{name}{n}" for n in range(count)), on=on))


def test_a_pack_of_batched_callbacks_uses_one_permit():
    bench = sized(2, pack=3)
    standard = bench.state.tiers.all[STANDARD]
    assert many(bench, "b", 8, to("a", batch=True)) == [f"b{n}" for n in range(6)]
    assert (standard.used, standard.packed) == (2, 6)
    assert delivered(bench.done("b0")) == ["b6"]
    for id in ("b1", "b2", "b3"):
        bench.done(id)
    assert (standard.used, standard.packed) == (2, 4)  # b4, b5, b6, b7
    bench.done("b4")
    assert (standard.used, standard.packed) == (1, 3)
    invariants.check(bench.state)


def test_packed_callbacks_do_not_borrow_and_let_others_borrow_past_them():
    bench = Bench(pack=2)
    for tier, permits in enumerate((1, 1, 1, 1, 4)):
        bench.do(Resize(tier, permits))
    assert many(bench, "b", 4, to("a", batch=True)) == ["b0", "b1"]
    assert many(bench, "s", 3, to("c")) == ["s0", "s1"]  # borrowed from ECONOMY: half of its four
    assert [permits.lent for permits in bench.state.tiers.all] == [0, 0, 0, 0, 2]
    invariants.check(bench.state)


def test_a_new_pack_size_recounts_the_permits():
    bench = sized(4, pack=1)
    many(bench, "b", 4, to("a", batch=True))
    standard = bench.state.tiers.all[STANDARD]
    assert standard.used == 4
    bench.do(Configure(Settings(pack=3)))
    assert standard.used == 2
    invariants.check(bench.state)


def test_one_host_leaves_a_fifth_of_the_permits_to_others():
    bench = sized(10)
    assert len(many(bench, "a", 30, to("a"))) == 8
    assert query.why(bench.state, bench.intent("a9"), T0).code == "host-busy"
    assert len(many(bench, "b", 30, to("b"))) == 2
    assert query.why(bench.state, bench.intent("a9"), T0).code == "no-permit"
    assert delivered(bench.done("a0")) == ["b2"]  # a still holds four times what is free, b does not
    invariants.check(bench.state)


def test_the_invariants_allow_callbacks_that_are_held_back():
    bench = sized(10)
    many(bench, "a", 30, to("a"))
    invariants.check(bench.state)  # two permits are free, and a's callbacks wait
    bench.save()
    invariants.check(bench.thawed().state)  # nobody has been looked at yet


def test_a_small_tier_is_used_to_the_last_permit():
    bench = sized(4)
    assert len(many(bench, "a", 9, to("a"))) == 4


def test_one_host_with_batches_leaves_permits_too():
    bench = sized(10, pack=2)
    assert len(many(bench, "a", 40, to("a", batch=True))) == 16
    assert len(many(bench, "b", 3, to("b"))) == 2
    invariants.check(bench.state)


def test_a_receiver_may_say_that_it_is_too_late():
    bench = Bench()
    bench.submit("x", on=to("a"))
    bench.settle("x", Expired("the sale is over"))
    intent = bench.intent("x")
    assert intent.status.name == "EXPIRED"
    assert intent.rare is not None and intent.rare.last_error is not None
    assert intent.rare.last_error.message == "the sale is over"
    bench.submit("y", on=to("a", expired_action=ExpiredAction.DEAD_LETTER))
    bench.settle("y", Expired("too late"))
    assert bench.intent("y").status.name == "DEAD_LETTERED"


def test_packed_callbacks_are_counted_after_a_restart():
    bench = sized(2, pack=3)
    many(bench, "b", 5, to("a", batch=True))
    bench.save()
    again = bench.thawed()
    standard = again.state.tiers.all[STANDARD]
    assert (standard.used, standard.packed, standard.pack) == (2, 5, 3)
    invariants.check(again.state)
