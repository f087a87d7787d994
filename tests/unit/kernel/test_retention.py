"""Finished intents are forgotten by time and by count."""

from __future__ import annotations

from duetime.limits import DAY_MS, MINUTE_MS
from duetime.protocol.outcome import Rejected
from tests.unit.kernel.bench import Bench, errors, stream

WEEK, MONTH = 7 * DAY_MS, 30 * DAY_MS


def finished(bench: Bench, *ids: str, **more) -> None:
    for id in ids:
        bench.submit(id, **more)
        bench.done(id)


def there(bench: Bench, *ids: str) -> str:
    return "".join(id for id in ids if bench.store.get(id) is not None)


def test_a_finished_intent_is_kept_for_the_retention_time():
    bench = Bench()
    finished(bench, "a")
    bench.at(WEEK)
    assert there(bench, "a") == "a"
    bench.at(WEEK + MINUTE_MS)
    assert there(bench, "a") == ""


def test_every_end_but_the_dead_letter_is_forgotten_alike():
    bench = Bench()
    finished(bench, "a")
    bench.submit("b", delay=5)
    bench.cancel("b")
    bench.submit("c", on=stream(), deadline=0)
    bench.submit("d")
    bench.settle("d", Rejected("bad", "never"))
    bench.at(100)
    assert bench.statuses(*"abcd") == ["ACKED", "CANCELED", "EXPIRED", "DEAD_LETTERED"]
    bench.at(WEEK + MINUTE_MS)
    assert there(bench, *"abcd") == "d"
    bench.at(MONTH + MINUTE_MS)
    assert there(bench, *"abcd") == ""


def test_live_intents_are_never_forgotten():
    bench = Bench(retention_ms=0, retention_count=0, dead_letter_retention_ms=0, key_window_ms=0)
    bench.submit("p", on=stream())
    bench.submit("a", delay=100 * DAY_MS)
    bench.submit("b", after=("p",))
    bench.submit("c")
    bench.at(99 * DAY_MS)
    assert there(bench, *"pabc") == "pabc"


def test_a_revived_dead_letter_is_kept_again():
    bench = Bench(dead_letter_retention_ms=DAY_MS, key_window_ms=0)
    bench.submit("a")
    bench.settle("a", Rejected("bad", "never"))
    bench.at(DAY_MS)
    bench.revive("a")
    bench.at(5 * DAY_MS)
    assert there(bench, "a") == "a"


def test_a_forgotten_dead_letter_cannot_be_revived():
    bench = Bench(dead_letter_retention_ms=0, key_window_ms=0)
    bench.submit("a")
    bench.settle("a", Rejected("bad", "never"))
    bench.later(2 * MINUTE_MS)
    assert there(bench, "a") == ""
    assert bench.revive("a").answer.reason.value == "NoSuchIntent"  # type: ignore[union-attr]


def test_a_key_is_kept_for_its_window_though_the_retention_is_shorter():
    bench = Bench(retention_ms=0, dead_letter_retention_ms=0)
    finished(bench, "a", key="k")
    finished(bench, "b")
    bench.at(DAY_MS - 1)
    assert there(bench, "a", "b") == "a"
    assert errors(bench.submit("x", key="k")) == ["KeyFinished"]
    bench.at(DAY_MS + MINUTE_MS)
    assert there(bench, "a") == ""
    assert errors(bench.submit("x", key="k")) == [""]


def test_the_number_of_finished_intents_is_limited():
    bench = Bench(retention_count=2_000)
    ids = [f"i{n}" for n in range(5_000)]
    bench.submit(*ids, delay=5)
    for id in ids:
        bench.cancel(id)
    kept = [id for id in ids if bench.store.get(id) is not None]
    assert kept == ids[3_000:]


def test_the_count_does_not_touch_dead_letters_and_keys():
    bench = Bench(retention_count=0)
    finished(bench, "a", key="k")
    bench.submit("b")
    bench.settle("b", Rejected("bad", "never"))
    ids = [f"i{n}" for n in range(1_000)]
    bench.submit(*ids, delay=5)
    for id in ids:
        bench.cancel(id)
    assert there(bench, "a", "b") == "ab"
    assert there(bench, *ids[:998]) == ""


def test_the_marks_never_move_back():
    bench = Bench()
    finished(bench, "a")
    bench.at(WEEK + MINUTE_MS)
    before = bench.state.marks
    bench.at(0)
    bench.configure(retention_ms=MONTH)
    bench.at(WEEK + 5 * MINUTE_MS)
    assert there(bench, "a") == ""
    assert bench.state.marks.finished_before_ms >= before.finished_before_ms


def test_a_longer_window_for_keys_does_not_stop_forgetting():
    bench = Bench()
    bench.at(DAY_MS)
    bench.configure(key_window_ms=MONTH)
    finished(bench, "a")
    bench.later(WEEK + MINUTE_MS)
    assert there(bench, "a") == ""


def test_a_forgotten_id_can_be_used_again():
    bench = Bench(retention_ms=0, key_window_ms=0)
    finished(bench, "a")
    bench.later(2 * MINUTE_MS)
    assert errors(bench.submit("a")) == [""]
    assert bench.intent("a").delivery == 1


def test_the_marks_survive_a_restart():
    bench = Bench()
    finished(bench, "a")
    bench.at(WEEK + MINUTE_MS)
    finished(bench, "b")
    bench.save()
    again = bench.thawed()
    assert again.state.marks == bench.state.marks
    assert there(again, "a", "b") == "b"


def test_a_larger_count_brings_nothing_back():
    bench = Bench(retention_count=0)
    ids = [f"i{n}" for n in range(1_000)]
    bench.submit(*ids, delay=5)
    for id in ids:
        bench.cancel(id)
    assert bench.state.marks.ended_to == 1_000
    bench.configure(retention_count=5_000)
    bench.later(5 * MINUTE_MS)
    assert bench.state.marks.ended_to == 1_000
