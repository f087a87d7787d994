"""GET /v1/intents: filters, order, pages that neither repeat nor leave out."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, urlencode

import pytest

from tests.http.checks import problem
from tests.http.life import STATES, now_s

HOUR_MS = 3_600_000


def page(server, **query):
    named = {name.replace("tag_", "tag.").rstrip("_"): value for name, value in query.items()}
    answer = server.ask("GET", f"/v1/intents?{urlencode(named)}")
    assert answer.status == 200, answer.body
    assert set(answer.json) == {"items", "nextCursor", "partial"}
    return answer.json


def every(server, **query):
    """All pages, one after the other."""
    found, cursor = [], None
    while True:
        body = page(server, **query, **({"cursor": cursor} if cursor else {}))
        found += body["items"]
        cursor = body["nextCursor"]
        if cursor is None:
            return found


def ids(items):
    return [item["intentId"] for item in items]


def test_an_item_is_the_whole_intent(life):
    id = life.at("SCHEDULED", tags={"whole": life.fresh()})
    shown = life.get(id)
    (item,) = page(life.server, tag_whole=shown["tags"]["whole"])["items"]
    assert item == shown


@pytest.mark.parametrize("status", STATES)
def test_by_status(life, status):
    mark = life.fresh()
    made = life.at(status, tags={"mark": mark})
    other = life.at("CANCELED" if status == "SCHEDULED" else "SCHEDULED", tags={"mark": mark})
    assert ids(page(life.server, status=status, tag_mark=mark)["items"]) == [made]
    assert ids(page(life.server, status=status.lower(), tag_mark=mark)["items"]) == [made]
    both = page(life.server, status="SCHEDULED,CANCELED," + status, tag_mark=mark)["items"]
    assert set(ids(both)) == {made, other}


@pytest.mark.parametrize(
    ("fields", "query"),
    [
        ({"precisionTier": "ULTRA"}, {"tier": "ultra"}),
        ({"task": {"name": "lt", "queue": "lq"}}, {"queue": "lq"}),
        ({"task": {"name": "lt", "queue": "lq"}}, {"task": "lt"}),
        ({"entity": {"type": "le", "id": "1/2", "message": "m"}}, {"entity": "le"}),
        ({"entity": {"type": "le", "id": "1/2", "message": "m"}}, {"entity": "le/1/2"}),
        ({"tags": {"l.x": "a b&\u00e9"}}, {"tag.l.x": "a b&\u00e9"}),
    ],
)
def test_a_list_is_filtered_by_the_fields_of_an_intent(life, fields, query):
    mark = life.fresh()
    tags = {"mark": mark, **fields.pop("tags", {})}
    made = life.server.create(tags=tags, **fields)["intentId"]
    life.server.create(tags={"mark": mark})
    found = life.server.ask("GET", f"/v1/intents?{urlencode({**query, 'tag.mark': mark})}").json
    assert ids(found["items"]) == [made]
    none = {name: value + "-not" if name != "tier" else "ECONOMY" for name, value in query.items()}
    assert not life.server.ask("GET", f"/v1/intents?{urlencode({**none, 'tag.mark': mark})}").json["items"]


def test_by_time(life):
    mark = life.fresh()
    times = ["2040-01-01T00:00:00Z", "2040-01-02T00:00:00Z", "2040-01-03T00:00:00Z"]
    made = [life.server.create(executeAt=time, tags={"mark": mark})["intentId"] for time in times]

    def between(**query):
        return ids(page(life.server, tag_mark=mark, order="due", **query)["items"])

    assert between() == made
    assert between(from_=times[1]) == made[1:], "from is inclusive"
    assert between(to=times[1]) == made[:1], "to is not"
    assert between(from_=times[0], to=times[2]) == made[:2]
    assert between(from_="2040-01-01T01:00:00+01:00", to="2210000000") == made[:2] or between(
        from_="2040-01-01T01:00:00+01:00"
    )


class TestOrder:
    def test_newest_first(self, life):
        """FLAWS 24: lists in hash order."""
        mark = life.fresh()
        made = [
            life.server.create(tags={"mark": mark}, delayMs=HOUR_MS * (9 - n))["intentId"] for n in range(9)
        ]
        assert ids(page(life.server, tag_mark=mark)["items"]) == made[::-1]
        assert ids(page(life.server, tag_mark=mark, order="newest")["items"]) == made[::-1]
        assert ids(page(life.server, tag_mark=mark, order="due")["items"]) == made[::-1]

    def test_of_one_batch_too(self, life):
        mark = life.fresh()
        news = [{"delayMs": HOUR_MS, "stream": {"name": "n"}, "tags": {"mark": mark}} for _ in range(40)]
        made = ids(
            item["intent"] for item in life.server.ask("POST", "/v1/intents/batch", news).json["items"]
        )
        assert ids(every(life.server, tag_mark=mark, limit=7)) == made[::-1]

    @pytest.mark.parametrize("order", ["newest", "due"])
    def test_pages_neither_repeat_nor_leave_out(self, life, order):
        mark = life.fresh()
        made = {
            life.server.create(tags={"mark": mark}, delayMs=HOUR_MS + n % 3)["intentId"] for n in range(25)
        }
        found = every(life.server, tag_mark=mark, limit=4, order=order)
        assert len(found) == 25 and set(ids(found)) == made
        whole = page(life.server, tag_mark=mark, limit=500, order=order)
        assert whole["items"] == found and whole["nextCursor"] is None

    def test_new_intents_do_not_shift_the_pages(self, life):
        mark = life.fresh()
        made = [life.server.create(tags={"mark": mark})["intentId"] for _ in range(6)]
        first = page(life.server, tag_mark=mark, limit=3)
        life.server.create(tags={"mark": mark})
        life.do("cancel", made[0])
        second = page(life.server, tag_mark=mark, limit=3, cursor=first["nextCursor"])
        assert ids(first["items"] + second["items"]) == made[::-1]


def test_the_default_is_a_page_of_fifty(life):
    mark = life.fresh()
    news = [{"delayMs": HOUR_MS, "stream": {"name": "n"}, "tags": {"mark": mark}} for _ in range(60)]
    life.server.ask("POST", "/v1/intents/batch", news)
    body = page(life.server, tag_mark=mark)
    assert len(body["items"]) == 50 and body["nextCursor"]


def test_a_list_shows_the_latest_changes(life):
    """Read your writes: the list is never behind an answer."""
    mark = life.fresh()
    for number in range(1, 11):
        id = life.server.create(tags={"mark": mark})["intentId"]
        assert len(page(life.server, tag_mark=mark)["items"]) == number
        life.do("cancel", id)
        assert len(page(life.server, tag_mark=mark, status="CANCELED")["items"]) == number


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=501", "limit=x", "limit=-1", "limit=", "limit=1.5", "limit=" + "9" * 5000,
        "order=oldest",
        "cursor=nonsense", "cursor=%00", "cursor=" + "A" * 3000, "status=GONE", "status=", "tier=",
        "tier=SLOW",
        "from=yesterday", "to=x", "from=-1", "from=1e400", "from=nan", "from=inf",
        "entity=", "entity=/x", "entity=x/",
        "unknown=1", "tag.=x", "tag=x", "limit=5&limit=6", "%ff=1", "status=%ff", "Status=ACKED",
        "from=" + "9" * 5000, f"limit={quote(chr(0x665))}",
    ],
    ids=lambda query: query[:30],
)  # fmt: skip
def test_a_bad_parameter(server, query):
    problem(server.ask("GET", f"/v1/intents?{query}"), 40002)


@pytest.mark.parametrize("place", [10**30, 2**63, -(2**63), -(10**30), 1.5, "x", None])
@pytest.mark.parametrize("order", ["newest", "due"])
def test_a_forged_cursor(server, order, place):
    text = json.dumps([order[0], place, place]).encode()
    cursor = base64.urlsafe_b64encode(text).decode().rstrip("=")
    problem(server.ask("GET", f"/v1/intents?order={order}&cursor={cursor}"), 40002)


def test_a_cursor_of_the_other_order_is_refused_or_harmless(life):
    mark = life.fresh()
    for _ in range(5):
        life.server.create(tags={"mark": mark})
    cursor = page(life.server, tag_mark=mark, limit=2)["nextCursor"]
    answer = life.server.ask("GET", f"/v1/intents?order=due&cursor={quote(cursor)}&tag.mark={mark}")
    problem(answer, 40002)


def test_far_and_near_are_in_one_list(life):
    """FLAWS 10: what is not in memory is still there."""
    mark = life.fresh()
    near = life.server.create(tags={"mark": mark}, executeAt=now_s(60_000))["intentId"]
    far = life.server.create(tags={"mark": mark}, executeAt=now_s(90 * 24 * HOUR_MS))["intentId"]
    assert ids(page(life.server, tag_mark=mark, order="due")["items"]) == [near, far]
