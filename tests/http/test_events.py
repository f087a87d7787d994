"""GET /v1/events: every transition once and in order, filters, and going on behind the last one seen."""

from __future__ import annotations

import http.client
import signal
from urllib.parse import urlsplit

import pytest

from tests.http.checks import problem
from tests.http.listener import Listener
from tests.http.server import ServerProcess

FIELDS = {
    "intentId", "status", "previousStatus", "at", "delivery", "attempts", "precisionTier", "lane", "lateMs",
    "limitedMs", "error", "errorKind", "task", "queue", "tags",
}  # fmt: skip


def place(seen):
    position, number = seen.id.split(".")
    return int(position), int(number)


def test_the_headers_of_a_stream(events):
    assert events.headers["content-type"].startswith("text/event-stream")
    assert events.headers["cache-control"] == "no-store"


def test_a_life_in_order(life):
    id = life.at("ACKED")
    mine = [seen for seen in life.events.seen if seen.data.get("intentId") == id]
    assert [seen.data["status"] for seen in mine] == ["SCHEDULED", "DUE", "DISPATCHING", "ACKED"]
    assert [seen.data["previousStatus"] for seen in mine] == [None, "SCHEDULED", "DUE", "DISPATCHING"]
    assert all(set(seen.data) == FIELDS and seen.event == "transition" for seen in mine)
    assert mine[-1].data["delivery"] == 1 and mine[-1].data["attempts"] == 1
    assert mine[-1].data["precisionTier"] == "FAST" and mine[-1].data["lateMs"] >= 0
    assert mine[0].data["at"] <= mine[-1].data["at"]


def test_a_failure_says_why(life):
    id = life.at("DEAD_LETTERED")
    told = life.events.reached(id, "DEAD_LETTERED")
    assert "418" in told["error"] and told["errorKind"] == "http"


def test_an_event_names_the_function_its_queue_and_its_tags(server, events):
    id = server.create(task={"name": "events-t", "queue": "events-q"}, tags={"tenant": "acme"})["intentId"]
    told = events.reached(id, "SCHEDULED")
    assert (told["task"], told["queue"], told["tags"]) == ("events-t", "events-q", {"tenant": "acme"})
    assert told["error"] is None and told["errorKind"] is None


def test_places_only_grow(life):
    for _ in range(5):
        life.at("ACKED")
    places = [place(seen) for seen in life.events.seen]
    assert places == sorted(places) and len(set(places)) == len(places)


FILTERS = [
    ("?status=ACKED", lambda data: data["status"] == "ACKED"),
    ("?status=acked,dispatching", lambda data: data["status"] in ("ACKED", "DISPATCHING")),
    ("?tier=fast", lambda data: data["precisionTier"] == "FAST"),
    ("?queue=events-q", lambda data: data["lane"] == "task:events-q"),
    ("?task=events-t", lambda data: data["lane"] == "task:events-q"),
    ("?entity=events-e", lambda data: data["lane"].startswith("entity:events-e")),
    ("?entity=events-e/7", lambda data: data["lane"].startswith("entity:events-e")),
]


@pytest.mark.parametrize(("query", "right"), FILTERS, ids=[query for query, _ in FILTERS])
def test_filters(life, query, right):
    with Listener(life.server, query) as listener:
        life.server.create(task={"name": "events-t", "queue": "events-q"}, precisionTier="FAST")
        life.server.create(entity={"type": "events-e", "id": "7", "message": "m"})
        life.server.create(entity={"type": "events-x", "id": "7", "message": "m"})
        last = life.at("ACKED")
        if "entity" in query or "queue" in query or "task" in query:
            listener.until(lambda seen: right(seen.data))
        else:
            listener.reached(last, "ACKED")
        assert listener.seen and all(right(seen.data) for seen in listener.seen)


def test_a_stream_of_one_intent_has_only_its_events(life):
    wanted, other = life.fresh(), life.fresh()
    with Listener(life.server, f"?intentId={wanted}") as listener:
        life.server.create(intentId=other)
        life.server.create(intentId=wanted)
        listener.reached(wanted, "SCHEDULED")
        assert {seen.data["intentId"] for seen in listener.seen} == {wanted}


def test_going_on_behind_the_last_one_seen(life):
    first, second = life.at("ACKED"), life.at("ACKED")
    begun = next(seen for seen in life.events.seen if seen.data["intentId"] == first)
    with Listener(life.server, "", {"Last-Event-ID": begun.id}) as resumed:
        resumed.reached(second, "ACKED")
        mine = [seen for seen in resumed.seen if seen.data["intentId"] in (first, second)]
        theirs = [seen for seen in life.events.seen if seen.data["intentId"] in (first, second)]
        assert mine == theirs[1:], "the one that was seen is not sent again, and none is left out"
        assert not any(seen.event == "gap" for seen in resumed.seen)
        later = life.at("SCHEDULED")
        resumed.reached(later, "SCHEDULED")
    assert resumed.retry


def test_events_that_are_no_longer_kept_are_a_gap(life):
    with Listener(life.server, "", {"Last-Event-ID": "0.0"}) as resumed:
        id = life.at("ACKED")
        resumed.reached(id, "ACKED")
        assert resumed.seen[0].event == "gap" and resumed.seen[0].data["message"]


def test_an_event_that_has_not_been_yet_is_of_another_log(life):
    """Whoever comes with one, from before the data was wiped perhaps, is told so and hears what happens."""
    for id in ("999999999999.0", "9" * 60 + ".9"):
        with Listener(life.server, "", {"Last-Event-ID": id}) as resumed:
            made = life.at("SCHEDULED")
            resumed.reached(made, "SCHEDULED")
            assert resumed.seen[0].event == "gap"


def test_a_gap_after_a_restart(tmp_path):
    with ServerProcess(tmp_path / "data") as server:
        with Listener(server) as listener:
            id = server.create()["intentId"]
            listener.reached(id, "SCHEDULED")
            last = listener.seen[-1].id
        server.create()
        server.kill()
        server.start()
        with Listener(server, "", {"Last-Event-ID": last}) as resumed:
            resumed.until(lambda seen: seen.event == "gap")
            after = server.create()["intentId"]
            resumed.reached(after, "SCHEDULED")


def test_a_head_request_ends(server):
    place = urlsplit(server.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=20)
    for _ in range(2):  # over the same connection: the stream of the first does not hold it
        connection.request("HEAD", "/v1/events")
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200 and answer.headers["content-type"].startswith("text/event-stream")
    connection.request("GET", "/health/live")
    assert connection.getresponse().status == 200
    connection.close()


@pytest.mark.parametrize("query", ["?status=GONE", "?tier=NO", "?nothing=1", "?status=", "?entity=/x"])
def test_a_bad_filter(server, query):
    problem(server.ask("GET", f"/v1/events{query}"), 40002)


def test_a_stop_ends_every_stream(tmp_path):
    with ServerProcess(tmp_path / "data") as server:
        listeners = [Listener(server) for _ in range(3)]
        server.signal(signal.SIGTERM)
        assert all(listener.over.wait(20) for listener in listeners)
        assert server.wait() == 0
        for listener in listeners:
            listener.close()


def test_a_listener_that_reads_nothing_does_not_delay_others(life):
    """It is a file that is full, not a queue that is waited for."""
    with Listener(life.server) as lazy, lazy.paused():
        news = [{"delayMs": 0, "stream": {"name": "nobody"}} for _ in range(2_000)]
        assert life.server.ask("POST", "/v1/intents/batch", news).json["created"] == 2_000
        life.at("ACKED")
