"""What operators see and change: the chronoscope, lanes, tiers, segments."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import pytest

from tests.http.checks import problem

TIERS = ["ULTRA", "FAST", "HIGH", "STANDARD", "ECONOMY"]
ADMIN = "/v1/admin"


def get(server, path, **query):
    answer = server.ask("GET", f"{ADMIN}/{path}" + (f"?{urlencode(query)}" if query else ""))
    assert answer.status == 200, answer.body
    return answer.json


class TestChronoscope:
    def test_the_chronoscope_has_every_tier(self, server):
        body = get(server, "chronoscope")
        assert [tier["tier"] for tier in body["tiers"]] == TIERS
        for tier in body["tiers"]:
            assert {"pending", "ready", "running", "backpressure", "lateness"} <= set(tier)
            assert {"available", "max", "borrowed", "lent"} <= set(tier["permits"])
            assert {"p50Ms", "p95Ms", "p99Ms"} <= set(tier["lateness"])
        assert {"cohorts", "borrows", "log", "store"} <= set(body)

    def test_the_numbers_of_the_chronoscope_follow_the_intents(self, life):
        def tier():
            return next(each for each in get(life.server, "chronoscope")["tiers"] if each["tier"] == "HIGH")

        before = tier()
        held = life.at("DISPATCHING", precisionTier="HIGH")
        life.at("SCHEDULED", precisionTier="HIGH")
        after = tier()
        assert after["running"] == before["running"] + 1 and after["pending"] >= before["pending"] + 1
        assert after["permits"]["available"] == before["permits"]["available"] - 1
        life.do("cancel", held)


class TestTiers:
    def test_permits_change_at_once(self, life):
        def permits():
            return next(
                each["permits"]
                for each in get(life.server, "chronoscope")["tiers"]
                if each["tier"] == "ECONOMY"
            )

        before = permits()["max"]
        answer = life.server.ask("PATCH", f"{ADMIN}/tiers/economy", {"concurrency": before + 7})
        assert answer.status == 200 and answer.json == {"tier": "ECONOMY", "concurrency": before + 7}
        assert permits()["max"] == before + 7
        life.server.ask("PATCH", f"{ADMIN}/tiers/ECONOMY", {"concurrency": before})
        assert permits()["max"] == before

    @pytest.mark.parametrize(
        ("tier", "body", "code"),
        [
            ("SLOW", {"concurrency": 5}, 42210), ("FAST", {"concurrency": 0}, 42208), ("FAST", {}, 42208),
            ("FAST", {"concurrency": 100_001}, 42208), ("FAST", {"concurrency": "5"}, 42208),
            ("FAST", {"concurrency": 5, "more": 1}, 42208), ("FAST", b"", 40003), ("FAST", [], 42208),
        ],
    )  # fmt: skip
    def test_refused(self, server, tier, body, code):
        problem(server.ask("PATCH", f"{ADMIN}/tiers/{tier}", body), code)


class TestLanes:
    def test_a_paused_lane_hands_out_nothing(self, life):
        id, path = life.fresh(), life.fresh()
        url = life.hooks.says(path)
        lane = f"callback:{url.split('/')[2]}"

        def shown():
            found = [each for each in get(life.server, "lanes")["lanes"] if each["name"] == lane]
            return found[0] if found else None

        assert life.server.ask("POST", f"{ADMIN}/lanes/{quote(lane, safe='')}/pause").status == 200
        try:
            life.server.create(intentId=id, delayMs=0, callback={"url": url}, precisionTier="FAST")
            life.events.reached(id, "DUE")
            assert shown()["paused"] and shown()["ready"] >= 1
            why = life.server.ask("GET", f"/v1/intents/{id}/why").json
            assert "pause" in (why["code"] + why["sentence"]).lower()
            assert life.hooks.count(path) == 0
        finally:
            assert life.server.ask("POST", f"{ADMIN}/lanes/{lane}/resume").status == 200
        life.hooks.take(path)
        life.events.reached(id, "ACKED")

    def test_an_entity_is_a_lane_with_a_slash(self, life):
        life.server.create(entity={"type": "basket", "id": "7", "message": "m"}, delayMs=0)
        lane = quote("entity:basket/7", safe="")
        for form in (lane, "entity:basket/7"):
            assert life.server.ask("POST", f"{ADMIN}/lanes/{form}/pause").status == 200
            assert life.server.ask("POST", f"{ADMIN}/lanes/{form}/resume").status == 200

    @pytest.mark.parametrize("lane", ["nonsense", "tasks:default", ":x", "task:", "task:" + "x" * 2000])
    def test_not_a_lane(self, server, lane):
        problem(server.ask("POST", f"{ADMIN}/lanes/{lane}/pause"), 42208)

    def test_a_body_is_empty_or_refused(self, server):
        problem(server.ask("POST", f"{ADMIN}/lanes/task:x/resume", b"{"), 40003)
        problem(server.ask("POST", f"{ADMIN}/lanes/task:x/resume", {"a": 1}), 42208)


class TestPagesOfLanes:
    """Lanes come page by page: an engine may have a million entities."""

    def test_they_are_paged_by_name(self, life):
        server = life.server
        names = [f"entity:paged/{number:03}" for number in range(7)]
        for number, name in enumerate(names):  # also those whose messages all wait
            target = {"type": "paged", "id": name.partition("/")[2], "message": "go"}
            server.create(entity=target, delayMs=3_600_000 if number % 2 else 0)
        found, cursor, pages = [], None, 0
        while True:
            page = get(server, "lanes", limit=3, **({"cursor": cursor} if cursor else {}))
            assert len(page["lanes"]) == 3 or page["nextCursor"] is None
            found += page["lanes"]
            cursor, pages = page["nextCursor"], pages + 1
            if cursor is None:
                break
        everyone = [lane["name"] for lane in found]
        assert everyone == sorted(set(everyone)) and pages > 2
        assert {lane["name"]: lane["pending"] for lane in found if lane["name"] in names} == dict.fromkeys(
            names, 1
        )
        few = get(server, "lanes", entities="false")["lanes"]
        assert [lane["name"] for lane in few] == [n for n in everyone if not n.startswith("entity:")]

    @pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 501}, {"entities": "no"}])
    def test_a_bad_parameter(self, server, query):
        pairs = "&".join(f"{name}={value}" for name, value in query.items())
        problem(server.ask("GET", f"/v1/admin/lanes?{pairs}"), 40002)


def test_segments(life):
    life.at("ACKED")
    body = get(life.server, "log/segments")
    assert body["segments"] and body["bytes"] == sum(segment["bytes"] for segment in body["segments"]) > 0
    positions = [segment["firstPosition"] for segment in body["segments"]]
    assert positions == sorted(positions)
    assert [segment["sealed"] for segment in body["segments"]][-1] is False


@pytest.mark.parametrize("path", ["chronoscope", "lanes", "log/segments"])
def test_an_unknown_parameter_is_refused(server, path):
    problem(server.ask("GET", f"{ADMIN}/{path}?x=1"), 40002)
