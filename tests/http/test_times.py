"""Times: exactly one, in what forms, how far in the past, and the deadline."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.http.checks import problem
from tests.http.life import now_s

STREAM = {"stream": {"name": "nobody"}}


def create(server, **fields):
    return server.ask("POST", "/v1/intents", {**STREAM, **fields})


def ms(text):
    """Milliseconds since 1970 of a time as it is shown."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    "fields", [{}, {"executeAt": "2031-01-01T00:00:00Z", "delayMs": 5}, {"executeAt": None, "delayMs": None}]
)
def test_not_exactly_one(server, fields):
    problem(create(server, **fields), 42201)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("2031-01-31T09:00:00Z", "2031-01-31T09:00:00.000Z"),
        ("2031-01-31T09:00:00.5+01:00", "2031-01-31T08:00:00.500Z"),
        ("2031-01-31T09:00:00.123456-08:00", "2031-01-31T17:00:00.123Z"),
        ("2031-01-31T00:00:00+14:00", "2031-01-30T10:00:00.000Z"),
        ("2031-01-31 09:00:00+0530", "2031-01-31T03:30:00.000Z"),
        (1_927_530_000, "2031-01-30T09:00:00.000Z"),
        (1_927_530_000.25, "2031-01-30T09:00:00.250Z"),
    ],
)
def test_forms(server, said, shown):
    if isinstance(said, int | float):
        shown = datetime.fromtimestamp(said, UTC).strftime("%Y-%m-%dT%H:%M:%S") + (
            ".250Z" if said != int(said) else ".000Z"
        )
    assert create(server, executeAt=said).json["executeAt"] == shown


@pytest.mark.parametrize(
    "said",
    ["", "soon", "2031-01-31", "2031-01-31T09:00:00", "2031-13-01T00:00:00Z", "1927530000", -1, 0, 1e300,
     10**20, 1_927_530_000_000, True, [], {}, "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+23:59"],
)  # fmt: skip
def test_not_a_time(server, said):
    body = problem(create(server, executeAt=said), 42208)
    assert body["details"]["path"] == "$.executeAt"


@pytest.mark.parametrize("delay", [-1, 1.5, "5", 10**14, 10**13, True])
def test_not_a_delay(server, delay):
    problem(create(server, delayMs=delay), 42208)


def test_a_delay_counts_from_now(server):
    before = now_s()
    shown = create(server, delayMs=3_600_000).json
    assert (before + 3_600) * 1000 - 1 <= ms(shown["executeAt"]) <= (now_s() + 3_600) * 1000 + 1


def test_a_little_in_the_past_is_due_now(life):
    id = life.fresh()
    life.server.create(intentId=id, executeAt=now_s(-4_000))
    assert life.events.reached(id, "DUE")


def test_a_delay_of_nothing_is_due_now(life):
    id = life.fresh()
    life.server.create(intentId=id, delayMs=0)
    life.events.reached(id, "DUE")
    shown = life.get(id)
    assert shown["dueAt"] and shown["nextAttemptAt"] is None


def test_too_far_in_the_past(server):
    problem(create(server, executeAt=now_s(-6_000)), 42206)
    problem(create(server, executeAt="2001-01-01T00:00:00Z"), 42206)


class TestDeadline:
    def test_before_the_time(self, server):
        problem(create(server, delayMs=5_000, deadline=now_s(1_000)), 42205)
        problem(create(server, executeAt=now_s(9_000), deadline=now_s(8_000)), 42205)

    @pytest.mark.parametrize("deadline", ["later", 0, True])
    def test_not_a_time(self, server, deadline):
        assert problem(create(server, delayMs=1, deadline=deadline), 42208)["details"]["path"] == "$.deadline"

    @pytest.mark.parametrize(
        ("action", "status"), [(None, "EXPIRED"), ("DISCARD", "EXPIRED"), ("DEAD_LETTER", "DEAD_LETTERED")]
    )
    def test_the_expired_action_decides_the_status(self, life, action, status):
        """FLAWS 3: no action said is DISCARD, and the expiry of one never stops the others'."""
        id = life.fresh()
        life.server.create(intentId=id, delayMs=0, deadline=now_s(200), expiredAction=action)
        life.events.reached(id, status)
        shown = life.get(id)
        assert shown["finishedAt"] >= shown["deadline"]

    def test_the_deadline_is_checked_before_every_delivery(self, life):
        """FLAWS 3: an attempt that would begin after the deadline does not begin."""
        id = life.fresh()
        url = life.hooks.says(id, life_says(503))
        life.server.create(
            intentId=id, delayMs=0, deadline=now_s(400), callback={"url": url}, precisionTier="ULTRA",
            redelivery={"initialDelayMs": 5_000, "maxDelayMs": 5_000, "jitter": False},
        )  # fmt: skip
        life.hooks.take(id)
        life.events.reached(id, "EXPIRED")
        assert life.hooks.count(id) == 0


def life_says(status):
    from tests.receiver import Say

    return Say(status)


def test_late_ms_is_the_lateness_of_the_webhook(life):
    id = life.fresh()
    url = life.hooks.says(id)
    life.server.create(intentId=id, delayMs=50, callback={"url": url}, precisionTier="ULTRA")
    got = life.hooks.take(id)
    life.events.reached(id, "ACKED")
    shown = life.get(id)
    assert shown["lateMs"] == got.json["lateMs"] >= 0
    assert shown["executeAt"] <= shown["firstDispatchAt"] <= shown["finishedAt"]
