"""What a plan makes of terms: bodies and headers."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.channels.webhook.calls import CallPlan, problem_of
from duetime.protocol.effect import Deliver
from duetime.protocol.terms import Callback, Terms, Tier

URL = "http://example.com/"


def plan_of(callback: Callback, **more: object) -> tuple[CallPlan, Terms]:
    terms = Terms(callback, "callback:", **more)  # type: ignore[arg-type]
    return CallPlan(terms, callback, 10.0, False), terms


def delivery(terms: Terms, **changes: object) -> Deliver:
    return msgspec.structs.replace(Deliver("i", 1, 1, terms, b"1", 0, 0, 0, None, ""), **changes)


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.text("ab%\"'\\\x00\n")),
    st.integers(0, 10**13),
)
def test_the_body_is_json_whatever_stands_in_it(id, tags, execute_at_ms):
    plan, terms = plan_of(Callback(URL), tags=tags, tier=Tier.HIGH)
    body = msgspec.json.decode(plan.body_of(delivery(terms, id=id, execute_at_ms=execute_at_ms, late_ms=-3)))
    assert body["intentId"] == id and body["tags"] == tags and body["payload"] == 1
    assert body["precisionTier"] == "HIGH" and body["lateMs"] == -3
    assert body["executeAt"].endswith(f".{execute_at_ms % 1000:03}Z")
    assert list(body) == [
        "intentId", "precisionTier", "delivery", "attempt", "executeAt", "lateMs", "payload", "tags",
    ]  # fmt: skip


def test_the_body_has_the_parents_where_asked():
    plan, terms = plan_of(Callback(URL, parents=True))
    body = msgspec.json.decode(plan.body_of(delivery(terms)))
    assert (body["parents"], body["moreParents"]) == ([], False), "it has no dependencies"
    one = b'"parents":[{"intentId":"p","status":"ACKED","result":"50%"}],"moreParents":true'
    body = msgspec.json.decode(plan.body_of(delivery(terms, parents=one)))
    assert body["parents"] == [{"intentId": "p", "status": "ACKED", "result": "50%"}] and body["moreParents"]


@pytest.mark.parametrize(
    "callback", [Callback(URL, "GET", parents=True), Callback(URL, body=b"x", parents=True)]
)
def test_parents_need_the_default_body(callback):
    assert problem_of(callback) is not None


def test_headers_of_one_delivery_do_not_stay_for_the_next():
    plan, terms = plan_of(Callback(URL, headers={"X-Duetime-Intent-Id": "forged", "A": "1"}))
    first = plan.headers_of(delivery(terms, id="first", traceparent="00-1"))
    second = plan.headers_of(delivery(terms, id="second", delivery=2))
    assert first["x-duetime-intent-id"] == "first" and first["traceparent"] == "00-1" and first["a"] == "1"
    assert second["x-duetime-intent-id"] == "second" and "traceparent" not in second
    assert len(second.getall("x-duetime-intent-id")) == 1 and second["x-duetime-delivery"] == "2"


def test_the_origin_names_the_host():
    origins = [plan_of(Callback(url))[0].origin for url in (
        "http://example.com/a", "HTTP://EXAMPLE.com:80/b", "https://example.com/", "http://example.com:81/",
    )]  # fmt: skip
    assert origins[0] == origins[1] and len(set(origins)) == 3


@pytest.mark.parametrize("value", ["a\rb", "a\nb", "a\x00b", "\x7f", "a\r\n b", "\ud800"])
def test_values_that_would_inject(value):
    assert problem_of(Callback(URL, headers={"X": value})) is not None


@pytest.mark.parametrize("value", ["", "a b", "a\tb", "ü", "漢字", '"quoted"; a=b'])
def test_values_that_are_fine(value):
    assert problem_of(Callback(URL, headers={"X": value})) is None


@pytest.mark.parametrize("method", ["POST", "post", "PATCH", "OPTIONS", "REPORT"])
def test_methods(method):
    assert problem_of(Callback(URL, method)) is None


@pytest.mark.parametrize("method", ["", "A B", "CONNECT", "A" * 33, "GET\n"])
def test_no_methods(method):
    assert problem_of(Callback(URL, method)) is not None
