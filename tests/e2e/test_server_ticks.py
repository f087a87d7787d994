"""A server is killed across the ticks of a schedule: each tick has exactly one intent."""

from __future__ import annotations

from collections import Counter

from tests.http.listener import Listener
from tests.http.server import ServerProcess

ROUNDS = 4
EVERY_MS = 1_000


def test_killed_across_ticks_each_has_exactly_one_intent(tmp_path):
    body = {
        "everyMs": EVERY_MS,
        "misfire": "CATCH_UP",
        "catchUp": 100,
        "intent": {"stream": {"name": "nobody"}},
    }
    with ServerProcess(tmp_path / "data", store__checkpoint_ms=100) as server:
        assert server.ask("PUT", "/v1/schedules/s", body).status == 200
        for _ in range(ROUNDS):
            with Listener(server) as events:
                _next_tick(events, _times(server))
                server.kill()  # at a tick; the next ones pass while it is down
            server.start()
        with Listener(server) as events:
            _next_tick(events, _times(server))
        shown = server.ask("POST", "/v1/schedules/s/pause").json
        times = _times(server)
    assert set(Counter(times).values()) == {1}
    assert sorted(times) == list(range(min(times), max(times) + 1, EVERY_MS)), "none is lost"
    assert shown["made"] == len(times) >= ROUNDS


def _next_tick(events, known):
    def is_new(seen):
        name, _, time = seen.data.get("intentId", "").partition("@")
        return name == "s" and int(time) not in known

    events.until(is_new)


def _times(server):
    page = server.ask("GET", "/v1/intents?limit=500").json
    assert page["nextCursor"] is None
    return [int(intent["intentId"].partition("@")[2]) for intent in page["items"]]
