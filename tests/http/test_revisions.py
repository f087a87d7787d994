"""X-Duetime-Expected-Revision and If-Match: changes on top of what was seen."""

from __future__ import annotations

import pytest

from tests.http.checks import problem

VERBS = ("patch", "cancel", "fire-now", "revive")
BODY = {"patch": {"priority": 5}}


def ready(life, verb):
    return life.at("DEAD_LETTERED" if verb == "revive" else "SCHEDULED")


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("header", ["X_Duetime_Expected_Revision", "If_Match"])
def test_a_stale_one_is_refused_and_the_newest_taken(life, verb, header):
    id = ready(life, verb)
    revision = life.get(id)["revision"]
    write = (lambda number: f'"{number}"') if header == "If_Match" else str
    refused = problem(life.do(verb, id, BODY.get(verb), **{header: write(revision + 1)}), 40902)
    assert str(revision) in str(refused["details"]) or str(revision) in refused["message"]
    answer = life.do(verb, id, BODY.get(verb), **{header: write(revision)})
    assert answer.status == 200
    assert answer.json["revision"] > revision
    problem(life.do("patch", id, {"priority": 9}, X_Duetime_Expected_Revision=str(revision)), 40902)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "value", ["x", "", "1.0", "-1", "0", "0x1", "9" * 30, "9" * 5000, "1, 2", "\xb2"], ids=repr
)
def test_not_a_number(life, verb, value):
    id = ready(life, verb) if verb == "patch" else "nobody"
    problem(life.do(verb, id, BODY.get(verb), X_Duetime_Expected_Revision=value), 40001)
    problem(life.do(verb, id, BODY.get(verb), If_Match=f'"{value}"'), 40001)


def test_any_etag_will_do(life):
    id = life.at("SCHEDULED")
    assert life.do("patch", id, {"priority": 5}, If_Match="*").status == 200


@pytest.mark.parametrize("form", ['"{}"', 'W/"{}"', "{}"])
def test_the_etag_of_an_answer_can_be_sent_back(life, form):
    id = life.at("SCHEDULED")
    etag = life.server.ask("GET", f"/v1/intents/{id}").headers["etag"]
    answer = life.do("patch", id, {"priority": 5}, If_Match=form.format(etag.strip('"')))
    assert answer.status == 200 and answer.headers["etag"] != etag


def test_of_two_writers_with_the_same_revision_one_wins(life):
    id = life.at("SCHEDULED")
    seen = str(life.get(id)["revision"])
    answers = [
        life.do("patch", id, {"priority": number}, X_Duetime_Expected_Revision=seen) for number in (1, 2)
    ]
    assert [answer.status for answer in answers] == [200, 409]
    assert life.get(id)["priority"] == 1


def test_the_state_is_looked_at_before_the_revision_or_after_but_nothing_changes(life):
    id = life.at("ACKED")
    answer = life.do("cancel", id, X_Duetime_Expected_Revision="1")
    assert answer.json["errorCode"] in (40902, 42204)
