"""Options become terms and items; what is wrong with them is said before anything is stored."""

from __future__ import annotations

import pytest

from duetime import errors
from duetime.client.app.plan import Options, Plan, make_terms
from duetime.client.app.policies import Retry, Unique
from duetime.protocol.terms import (
    AckLevel,
    Backoff,
    Bare,
    Claim,
    Entity,
    Guarantee,
    OnInterrupt,
    Redelivery,
    Task,
    Tier,
    Until,
)

NOW_MS = 1_000_000
TASK = Task("work")


def terms(target=TASK, **options):
    return make_terms(target, Options(**options), "STANDARD")


def plan(**options):
    return Plan(terms(**options), Options(**options), 1_000)


def item(payload=b"", id="i", fresh=True, **options):
    return plan(**options).item(id, fresh, NOW_MS, payload)


def test_the_defaults():
    made = terms()
    assert (made.tier, made.ack, made.guarantee) == (Tier.STANDARD, AckLevel.DURABLE, Guarantee.AT_LEAST_ONCE)
    assert made.on_interrupt is OnInterrupt.RETRY and made.lane == "task:default"
    assert (made.timeout_ms, made.lease_ms, made.priority) == (30_000, 30_000, 0)
    assert made.redelivery == Redelivery(5, Backoff.EXPONENTIAL, 1_000, 60_000, 200, True)


@pytest.mark.parametrize(
    ("tier", "ack"),
    [
        ("ultra", "ASYNC"),
        ("Fast", "ASYNC"),
        ("HIGH", "BATCH_DEFERRED"),
        ("standard", "DURABLE"),
        ("ECONOMY", "DURABLE"),
    ],
)
def test_the_acknowledgement_follows_the_tier_unless_it_is_named(tier, ack):
    assert terms(tier=tier).ack is AckLevel[ack]
    assert terms(tier=tier, ack="durable").ack is AckLevel.DURABLE


def test_an_entity_is_at_most_once_unless_it_is_said():
    entity = Entity("Account", "1", "deposit")
    assert terms(entity).guarantee is Guarantee.AT_MOST_ONCE
    assert terms(entity).on_interrupt is OnInterrupt.DEAD_LETTER and terms(entity).serial
    again = terms(entity, guarantee="at-least-once")
    assert again.guarantee is Guarantee.AT_LEAST_ONCE and again.on_interrupt is OnInterrupt.RETRY
    assert terms(guarantee="at_most_once").on_interrupt is OnInterrupt.DEAD_LETTER
    assert terms(on_interrupt="dead-letter").on_interrupt is OnInterrupt.DEAD_LETTER


@pytest.mark.parametrize(
    ("said", "meant"), [("high", 300), ("NORMAL", 0), ("low", -300), (42, 42), (None, 0)]
)
def test_priority(said, meant):
    assert terms(priority=said).priority == meant


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"tier": "SLOW"}, errors.UnknownTier),
        ({"ack": "MAYBE"}, errors.InvalidField),
        ({"guarantee": "EXACTLY_ONCE"}, errors.InvalidField),
        ({"priority": "urgent"}, errors.InvalidField),
        ({"priority": 10**9}, errors.InvalidField),
        ({"timeout": 0}, errors.InvalidField),
        ({"lease": "2y"}, errors.InvalidField),
        ({"tags": {"a": 1}}, errors.InvalidField),
        ({"tags": {f"t{n}": "" for n in range(33)}}, errors.InvalidField),
        ({"expired_action": "EXPLODE"}, errors.InvalidField),
    ],
)
def test_wrong_terms_are_refused(options, error):
    with pytest.raises(error):
        terms(**options)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_attempts": 0},
        {"max_attempts": 2.5},
        {"multiplier": 0.5},
        {"multiplier": float("nan")},
        {"backoff": "linear"},
        {"max_delay": "2000d"},
        {"initial_delay": "10d", "max_delay": "1d"},
    ],
)
def test_a_wrong_retry_is_refused_where_it_is_written(wrong):
    with pytest.raises(errors.InvalidField):
        Retry(**wrong)


def test_without_a_longest_delay_a_long_first_one_counts():
    assert Retry(initial_delay="10d").policy().max_delay_ms == 10 * 86_400_000


def test_an_unknown_option_is_refused_with_the_known_options():
    with pytest.raises(errors.InvalidField, match="'retires'") as caught:
        Options().merged(retires=3)
    assert "retry" in caught.value.hint


def test_the_time_of_a_plan():
    assert item().execute_at_ms == NOW_MS
    assert item(delay="5s").execute_at_ms == NOW_MS + 5_000
    assert item(at=5_000).execute_at_ms == 5_000_000
    with pytest.raises(errors.TimeMissing):
        item(at=5_000, delay=1)
    with pytest.raises(errors.DeadlineTooEarly):
        item(delay="5s", deadline=1_001)


def test_an_items_own_bounds():
    assert item(id="a.b:c-d_1", fresh=False).id == "a.b:c-d_1"
    for id in ("", "with space", "x" * 129, "ä"):
        with pytest.raises(errors.InvalidField):
            item(id=id, fresh=False)
    with pytest.raises(errors.InvalidField):
        item(key="")
    assert len(item(b"x" * 1_000).payload) == 1_000
    with pytest.raises(errors.TooLarge):
        item(b"x" * 1_001)
    with pytest.raises(errors.InvalidField, match="1001"):
        item(after=[f"i{n}" for n in range(1_001)])


def test_a_fingerprint_is_that_of_the_request_not_of_the_moment():
    one = item(b"[1]", key="k", delay="1s").fingerprint
    later = plan(key="k", delay="1s").item("j", True, NOW_MS + 999, b"[1]").fingerprint
    assert one == later != 0
    assert one == item(b"[1]", key="k", delay="1s", tier="FAST").fingerprint, "a deploy may change the terms"
    different = [
        item(b"[2]", key="k", delay="1s").fingerprint,
        item(b"[1]", key="k", at=2_000).fingerprint,
        item(b"[1]", key="k", at=3_000).fingerprint,
        item(b"[1]", key="k", delay="1s", after=["x"]).fingerprint,
    ]
    assert one not in different and len(set(different)) == len(different)
    assert item(b"[1]").fingerprint == 0, "without a key nothing is compared"


def test_a_bare_target_has_terms_too():
    assert make_terms(Bare(), Options(), "FAST").tier is Tier.FAST


@pytest.mark.parametrize(
    ("options", "claim"),
    [
        ({"unique": Unique("k")}, Claim("k", Until.END)),
        ({"unique": Unique("k", until="start")}, Claim("k", Until.START)),
        ({"unique": Unique("k", lasting="1h")}, Claim("k", Until.TIME, 3_600_000)),
        ({"unique": Unique("k", "time", 2)}, Claim("k", Until.TIME, 2_000)),
        ({"collapse_key": "k"}, Claim("k", Until.DEBOUNCE)),
        ({"collapse_key": "k", "collapse": "throttle"}, Claim("k", Until.THROTTLE)),
    ],
)
def test_a_claim_is_on_the_item(options, claim):
    ties = item(**options).ties
    assert ties is not None and ties.claim == claim


@pytest.mark.parametrize(
    "options",
    [
        {"unique": Unique("k"), "collapse_key": "k"},
        {"unique": Unique("k"), "collapse": "debounce"},
        {"collapse": "debounce"},
        {"collapse_key": "k", "collapse": "end"},
        {"collapse_key": "k", "collapse": "never"},
        {"collapse_key": ""},
        {"collapse_key": "k" * 257},
        {"collapse_key": 7},
    ],
)
def test_a_claim_that_makes_no_sense_is_refused(options):
    with pytest.raises(errors.InvalidField):
        item(**options)


@pytest.mark.parametrize(
    "said",
    [
        {"key": ""}, {"key": "k", "until": "time"}, {"key": "k", "until": "end", "lasting": 5},
        {"key": "k", "until": "debounce"}, {"key": "k", "until": "whenever"}, {"key": "k", "lasting": 0},
        {"key": "k", "lasting": "400d"},
    ],
)  # fmt: skip
def test_an_invalid_unique_is_refused_where_it_is_written(said):
    with pytest.raises(errors.InvalidField):
        Unique(**said)


def test_unique_is_a_unique():
    with pytest.raises(errors.InvalidField, match="Unique"):
        Options().merged(unique={"key": "k"})


def test_an_embedded_engine_does_not_promise_replication_either():
    with pytest.raises(errors.InvalidField, match="no replicated log engine"):
        make_terms(Task("t"), Options(ack="replicated"), "STANDARD")
