"""What the ring of events keeps alive of the intents it tells about."""

from __future__ import annotations

from collections.abc import Iterable

from duetime.api.http.sse import Events, ServerEvent, Wanted, slimmed
from duetime.limits import EVENTS_BYTES_MAX, EVENTS_KEPT, EVENTS_SENT_BYTES
from duetime.protocol.effect import Change
from duetime.protocol.filter import Filter
from duetime.protocol.intent import Error, Intent, Rare, Status
from duetime.protocol.terms import Callback, Task, Terms, Tier
from duetime.wire.event import EventBody
from duetime.wire.shapes import written
from duetime.wire.views import transition


def shown_of(change: Change, intent: Intent) -> EventBody:
    return EventBody(**transition(change, intent, written))


def intent(target: Callback | Task) -> Intent:
    terms = Terms(target, "lane", Tier.HIGH, tags={"a": "b"})
    made = Intent(7, "i", terms, bytes(100_000), Status.DUE, 50, 0, 1, 1)
    made.rare = Rare(result=bytes(100_000))
    return made


def test_payloads_results_and_bodies_are_not_kept():
    slim = slimmed(intent(Callback("http://h/", body=bytes(60_000), headers={"a": "b" * 1_000})))
    assert slim.payload == b"" and slim.rare is None
    assert isinstance(slim.terms.target, Callback) and slim.terms.target.body is None


def test_filters_find_what_they_look_for():
    slim = slimmed(intent(Task("t", "q")))
    assert slim.id == "i"
    for filter, found in (
        (Filter(queue="q", task="t", tier=Tier.HIGH, tags={"a": "b"}, from_ms=50, to_ms=51), True),
        (Filter(queue="other"), False),
        (Filter(tags={"a": "c"}), False),
        (Filter(from_ms=51), False),
    ):
        assert filter.matches(slim) is found


def test_an_error_is_shown_only_with_the_transition_it_caused():
    made = intent(Task("t"))
    made.rare = Rare(last_error=Error(100, 1, "http", "HTTP 500"))
    retried = Change("i", Status.DISPATCHING, Status.SCHEDULED, 100, 1)
    assert shown_of(retried, made).error == "HTTP 500"
    for old, new, at_ms, delivery in (
        (Status.SCHEDULED, Status.DUE, 100, 1),
        (Status.DUE, Status.DISPATCHING, 200, 2),
        (Status.DISPATCHING, Status.ACKED, 300, 2),
        (Status.DISPATCHING, Status.SCHEDULED, 300, 2),  # a snooze
        (Status.DEAD_LETTERED, Status.SCHEDULED, 100, 1),  # revived
    ):
        assert shown_of(Change("i", old, new, at_ms, delivery), made).error is None, (old, new)


def event(number: int, size: int = 100, tags: dict[str, str] | None = None) -> ServerEvent:
    terms = Terms(Task("t", "q"), "task:q", tags=tags)
    made = Intent(number, f"i{number}", terms, b"", Status.DUE, 50, 0, 1, 1)
    shown = shown_of(Change(made.id, None, Status.DUE, 1, 0), made)
    return ServerEvent((7, number), made, Status.DUE, b"x" * size, shown)


def ring(events: Iterable[ServerEvent]) -> Events:
    made = Events(None)  # type: ignore[arg-type]  # nothing is recorded, it is filled by the test
    for each in events:
        made.keep(each)
    return made


def test_the_ring_is_bounded_by_number_and_by_bytes():
    many = ring(event(number) for number in range(EVENTS_KEPT + 5))
    assert len(many.after((0, 0))) == EVENTS_KEPT
    assert many.oldest() == (7, 4) and many.gap_behind((7, 3)) and not many.gap_behind((7, 4))
    tags = {"t": "x" * 60_000}
    large = ring(event(number, 1_000, tags) for number in range(2_000))
    assert sum(60_000 + 2 * len(each.text) for each in large.after((0, 0))) <= EVENTS_BYTES_MAX
    assert large.gap_behind((7, 1)) and large.after((0, 0))[-1].place == (7, 1_999)


def test_a_listener_is_handed_a_bounded_part_at_a_time():
    events = ring(event(number, 10_000) for number in range(100))
    everything, place, parts = Wanted(Filter()), (0, 0), []
    while place < events.newest():
        found, place = events.wanted(everything, place)
        assert sum(len(each.text) for each in found) < EVENTS_SENT_BYTES + 10_000
        parts += found
    assert [each.place for each in parts] == [(7, number) for number in range(100)]
    found, place = events.wanted(Wanted(Filter(), "i99"), (0, 0))
    assert len(found) == 1 and place == (7, 99), "what is not wanted counts for nothing"
