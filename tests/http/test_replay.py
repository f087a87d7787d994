"""GET /v1/admin/replay: an intent's life, or the system, as of a moment."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from tests.http.checks import problem

ADMIN = "/v1/admin"


def get(server, path, **query):
    answer = server.ask("GET", f"{ADMIN}/{path}?{urlencode(query)}")
    assert answer.status == 200, answer.body
    return answer.json


class TestReplay:
    def test_the_life_of_an_intent(self, life):
        """FLAWS 26: replay always returned nothing."""
        id = life.at("ACKED")
        body = get(life.server, "replay", intentId=id)
        assert "ACKED" in str(body) and id in str(body)

    def test_the_system_as_of_a_moment(self, life):
        id = life.at("CANCELED")
        shown = life.get(id)
        then = get(life.server, "replay", at=shown["createdAt"], intentId=id)
        assert id in str(then)
        assert get(life.server, "replay", at=shown["finishedAt"])

    @pytest.mark.parametrize(
        ("query", "code"), [("", 40004), ("at=x", 40002), ("intentId=nobody", 40401), ("z=1", 40002)]
    )
    def test_refused(self, server, query, code):
        problem(server.ask("GET", f"{ADMIN}/replay?{query}"), code)
