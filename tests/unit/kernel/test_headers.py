"""Headers travel with an intent to each of its deliveries."""

from __future__ import annotations

from duetime import limits
from duetime.protocol import bounds
from duetime.protocol.intent import Item
from tests.unit.kernel.bench import Bench, deliveries


def test_each_delivery_has_the_headers():
    bench = Bench()
    (first,) = deliveries(bench.submit("i", headers={"x-tenant": "42"}))
    assert first.headers == {"x-tenant": "42"}
    bench.fail("i")
    (second,) = deliveries(bench.later(60_000))
    assert (second.delivery, second.headers) == (2, {"x-tenant": "42"})


def test_headers_survive_a_checkpoint():
    bench = Bench()
    bench.submit("i", delay=1_000, headers={"a": "b"})
    bench.save()
    (delivery,) = deliveries(bench.thawed().at(1_000))
    assert delivery.headers == {"a": "b"}


def test_an_intent_without_headers_has_none():
    (delivery,) = deliveries(Bench().submit("i"))
    assert delivery.headers is None


def problem(headers: dict[str, str]) -> str:
    return bounds.item(Item("i", 0, 0, headers=headers)) or ""


def test_headers_have_bounds():
    many = {f"h{n}": "" for n in range(limits.INTENT_HEADERS_MAX)}
    assert problem(many) == "" and "33 headers" in problem({**many, "one-more": ""})
    assert "header name" in problem({"a b": ""}) and "header name" in problem({"": ""})
    assert "header name" in problem({"a" * (limits.HEADER_NAME_CHARS_MAX + 1): ""})
    value = "v" * limits.HEADER_CHARS_MAX
    assert problem({"a": value}) == "" and "header a" in problem({"a": value + "v"})
