"""GET /metrics: three forms, units in the names, and numbers that move."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

# One word of each row of the contract's list, and the name it must be found under.
COUNTERS = ("submitted", "duplicate", "completed", "failed", "retried", "dead", "expired", "canceled",
            "revived", "deliveries", "stale", "borrow", "wake", "reject")  # fmt: skip
HISTOGRAMS = ("lateness", "queue_wait", "delivery", "execution", "append", "sync", "batch", "checkpoint")
GAUGES = ("intents", "ready", "running", "permits", "hot", "cold", "log_bytes", "segments", "checkpoint_lag",
          "recovery", "epoch")  # fmt: skip


def families(server, accept=""):
    headers = {"accept": accept} if accept else {}
    answer = server.ask("GET", "/metrics", None, headers)
    assert answer.status == 200
    parse = parse_openmetrics if "openmetrics" in accept else parse_text
    return {family.name: family for family in parse(answer.body.decode())}


def value(server, name, **labels):
    """The sum of a metric's samples with these labels."""
    for family in families(server).values():
        for sample in family.samples:
            if sample.name == name:
                return sum(
                    each.value
                    for each in family.samples
                    if each.name == name and labels.items() <= each.labels.items()
                )
    raise AssertionError(f"there is no metric {name}")


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", "text/plain"), ("text/plain", "text/plain"), ("*/*", "text/plain"),
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text"),
        ("application/json", "application/json"),
    ],
)  # fmt: skip
def test_forms(server, accept, media_type):
    answer = server.ask("GET", "/metrics", None, {"accept": accept} if accept else {})
    assert answer.status == 200 and answer.headers["content-type"].startswith(media_type)
    if media_type == "application/json":
        assert all(name.startswith("duetime_") for name in answer.json)
    elif "openmetrics" in media_type:
        assert answer.body.endswith(b"# EOF\n") and families(server, accept)
    else:
        assert families(server, accept)


def test_everything_has_its_prefix_and_a_help(server):
    for name, family in families(server).items():
        assert name.startswith("duetime_") and family.documentation, name


@pytest.mark.parametrize(
    ("kind", "words"), [("counter", COUNTERS), ("histogram", HISTOGRAMS), ("gauge", GAUGES)]
)
def test_every_row_of_the_contract_is_there(server, kind, words):
    names = [name for name, family in families(server).items() if family.type == kind]
    missing = [word for word in words if not any(word in name for name in names)]
    assert not missing, f"no {kind} for {missing} among {names}"


def test_the_forms_say_the_same(server):
    text = set(families(server))
    json = server.ask("GET", "/metrics", None, {"accept": "application/json"}).json
    assert {name.removesuffix("_total") for name in json} == {name.removesuffix("_total") for name in text}


def test_counters_move(life):
    """FLAWS 25: most metrics never moved."""
    server = life.server
    moves = {"ACKED": "completed", "DEAD_LETTERED": "dead", "EXPIRED": "expired", "CANCELED": "canceled"}
    totals = [
        name for name, family in families(server).items() if family.type == "counter" and "intents" in name
    ]

    def count(word):
        name = next(name for name in totals if word in name)
        return value(server, f"{name}_total")

    for status, word in moves.items():
        before, submitted = count(word), count("submitted")
        life.at(status)
        assert count(word) == before + 1, word
        assert count("submitted") >= submitted + 1
    before = count("revived")
    life.do("revive", life.at("DEAD_LETTERED"))
    assert count("revived") == before + 1
    before, key = count("duplicate"), life.fresh()
    for _ in range(2):
        server.create(idempotencyKey=key)
    assert count("duplicate") == before + 1


def test_units_are_what_their_names_say(life):
    """FLAWS 25: "ms" were microseconds."""
    name = next(name for name, family in families(life.server).items() if "lateness" in name)
    life.at("ACKED")
    assert name.endswith("_seconds")
    count, total = value(life.server, f"{name}_count"), value(life.server, f"{name}_sum")
    assert count >= 1 and 0 <= total / count < 10
