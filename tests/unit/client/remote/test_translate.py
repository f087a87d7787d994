"""The protocol's words as the API's JSON, and back."""

from __future__ import annotations

import msgspec
import pytest

from duetime.api.codec.intent_decoder import Composer, Defaults
from duetime.api.codec.intent_encoder import IntentEncoder
from duetime.api.resources.admin import patched_settings
from duetime.client.app.plan import Options, Plan, make_terms
from duetime.client.app.policies import Retry, Unique
from duetime.client.remote import translate
from duetime.errors import BadTarget, InvalidField
from duetime.protocol.command import LaneSettings, Order, Patch, Revive
from duetime.protocol.intent import Error, Intent, Rare, Status, Ties
from duetime.protocol.terms import (
    Bare,
    Callback,
    Entity,
    ExpiredAction,
    Redelivery,
    Stream,
    Target,
    Task,
    Tier,
)
from duetime.protocol.view import view_of
from duetime.timefmt import moment_of
from duetime.wire import claims, views
from duetime.wire import intent as wire
from duetime.wire.intent import NewIntent, PatchIntent, ReviveIntent
from duetime.wire.lane import LanePatch

NOW_MS = 1_900_000_000_000
TARGETS: list[Target] = [
    Task("mail.send", "mail"),
    Entity("Account", "4/2", "deposit"),
    Stream("news"),
    Callback("http://x/hook", "PUT", {"a": "b"}, b"text", True),
]


def composed(fields: dict) -> tuple:
    """What the server makes of it."""
    new = msgspec.json.decode(msgspec.json.encode(fields), type=NewIntent)
    composer = Composer(Defaults(tier=Tier.STANDARD, payload_bytes_max=1000))
    return composer.terms(new), composer.item(new, 0, NOW_MS)


def read_back(intent: Intent) -> wire.Intent:
    """An intent as a client reads it from a server's answer."""
    return msgspec.json.decode(IntentEncoder().intent(intent), type=wire.Intent)


def here(intent: Intent) -> wire.Intent:
    """The same intent as an App in this process shows it."""
    return views.intent(view_of(intent), moment_of, msgspec.json.decode)


def test_a_share_arrives_as_it_was():
    terms = make_terms(Task("t"), Options(fairness_key="tenant-1", fairness_weight=7), "STANDARD")
    assert composed({"delayMs": 0, **translate.terms_fields(terms)})[0] == terms


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: type(target).__name__)
@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(
            tier="ultra",
            priority="HIGH",
            retry=Retry(
                max_attempts=3, backoff="fixed", initial_delay=5, max_delay=60, multiplier=1.5, jitter=False
            ),
            timeout=7,
            lease=8,
            tags={"k": "v"},
            shard_key="s",
            expired_action="dead-letter",
            guarantee="at-most-once",
            ack="durable",
        ),
    ],
    ids=["plain", "everything"],
)
def test_terms_arrive_as_they_were(target, options):
    terms = make_terms(target, options, "STANDARD")
    item = Plan(terms, options, 1000).item("an-id", True, NOW_MS, b"[1]")
    fields = {**translate.terms_fields(terms), **translate.item_fields(item, NOW_MS)}
    its_terms, its_item = composed(fields)
    assert its_terms == terms
    assert (its_item.id, its_item.execute_at_ms, its_item.payload) == ("an-id", NOW_MS, b"[1]")


def test_a_delay_is_sent_as_a_delay_and_a_moment_as_a_moment():
    terms = make_terms(Task("t"), Options(), "STANDARD")
    soon = Plan(terms, Options(delay=60), 1000).item("a", True, NOW_MS, b"")
    assert translate.item_fields(soon, NOW_MS) == {"intentId": "a", "delayMs": 60_000}
    at = Plan(terms, Options(at=2_000_000_000, deadline=2_000_000_001), 1000).item("a", False, NOW_MS, b"")
    assert translate.item_fields(at, NOW_MS) == {
        "intentId": "a",
        "executeAt": "2033-05-18T03:33:20.000Z",
        "deadline": "2033-05-18T03:33:21.000Z",
    }


def test_with_a_key_an_id_we_made_is_not_sent():
    """Else the same request, made again, would differ in its body and be refused."""
    options = Options(key="k", on_duplicate="return", after=["p"], traceparent="00-1")
    terms = make_terms(Task("t"), options, "STANDARD")
    fields = translate.item_fields(Plan(terms, options, 1000).item("made", True, NOW_MS, b""), NOW_MS)
    assert fields == {
        "delayMs": 0, "idempotencyKey": "k", "onDuplicate": "return", "after": ("p",), "traceparent": "00-1",
    }  # fmt: skip


def test_a_command_that_a_server_does_not_take_is_refused():
    with pytest.raises(BadTarget, match="bare intent"):
        translate.terms_fields(make_terms(Bare(), Options(), "STANDARD"))
    with pytest.raises(InvalidField, match="interrupted"):
        options = Options(guarantee="AT_LEAST_ONCE", on_interrupt="DEAD_LETTER")
        translate.terms_fields(make_terms(Task("t"), options, "STANDARD"))
    with pytest.raises(BadTarget, match="Only a callback"):
        translate.revive_fields(Revive("a", target=Task("t")))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: type(target).__name__)
def test_a_server_and_an_app_in_this_process_show_the_same(target):
    terms = make_terms(target, Options(tags={"a": "b"}, priority=-5, retry=Retry(multiplier=3)), "FAST")
    rare = Rare(
        key="k",
        after=("p",),
        traceparent="00-1",
        last_error=Error(NOW_MS, 2, "http", "no", 502),
        result=b'{"done":true}',
    )
    intent = Intent(
        0, "a", terms, b"[1,2]", Status.ACKED, NOW_MS, 0, NOW_MS - 9, NOW_MS + 9, deadline_ms=NOW_MS + 99,
        revision=4, delivery=2, attempt=2, due_at_ms=NOW_MS, first_dispatch_at_ms=NOW_MS + 1,
        finished_at_ms=NOW_MS + 9, late_ms=1, rare=rare,
    )  # fmt: skip
    assert read_back(intent) == here(intent)


def test_a_new_intent_is_shown_the_same():
    terms = make_terms(Task("t"), Options(), "STANDARD")
    intent = Intent(0, "a", terms, b"", Status.SCHEDULED, NOW_MS, NOW_MS, NOW_MS, NOW_MS)
    assert read_back(intent) == here(intent)


def test_changes_arrive_as_they_were():
    policy = Redelivery(max_attempts=2)
    composer = Composer(Defaults(tier=Tier.STANDARD, payload_bytes_max=1000))
    patch = Patch("a", 3, NOW_MS, 0, ExpiredAction.DEAD_LETTER, policy, {"k": "v"}, 5, b"[1]")
    said = msgspec.json.decode(msgspec.json.encode(translate.patch_fields(patch)), type=PatchIntent)
    assert composer.patch("a", said, 3) == patch
    revive = Revive("a", 3, NOW_MS, NOW_MS + 1, Callback("http://y"), policy, b"[1]")
    told = msgspec.json.decode(msgspec.json.encode(translate.revive_fields(revive)), type=ReviveIntent)
    assert composer.revive("a", told, 3) == revive
    assert translate.patch_fields(Patch("a")) == {} == translate.revive_fields(Revive("a"))


@pytest.mark.parametrize(
    "options",
    [
        Options(unique=Unique("k")),
        Options(unique=Unique("k", "start")),
        Options(unique=Unique("k", lasting="1h")),
        Options(collapse_key="k"),
        Options(collapse_key="k", collapse="throttle"),
    ],
)
def test_claims_arrive_as_they_were_and_come_back(options):
    terms = make_terms(Stream("s"), options, "STANDARD")
    item = Plan(terms, options, 1000).item("an-id", True, NOW_MS, b"")
    its_terms, its_item = composed({**translate.terms_fields(terms), **translate.item_fields(item, NOW_MS)})
    assert item.ties is not None and its_item.ties == item.ties
    rare = Rare(ties=Ties(item.ties.claim))
    intent = Intent(1, "i", its_terms, b"", Status.SCHEDULED, NOW_MS, NOW_MS, NOW_MS, NOW_MS, rare=rare)
    assert read_back(intent) == here(intent)
    shown = here(intent)
    assert claims.read(shown.collapse_key, shown.collapse, shown.unique) == item.ties.claim


@pytest.mark.parametrize(
    "settings",
    [
        LaneSettings(),
        LaneSettings(concurrency=3, rate=20, period_ms=60_000, burst=5, pending_max=9, priority=-7),
        LaneSettings(order=Order.EXPECTED),
        LaneSettings(order=Order.SHADOW, rate=1, period_ms=250),
    ],
)
def test_a_lane_s_settings_arrive_as_they_were_said(settings):
    before = LaneSettings(concurrency=8, rate=2, burst=2, pending_max=5, priority=1, order=Order.EXPECTED)
    body = msgspec.json.encode(translate.lane_fields(settings))
    assert patched_settings(before, msgspec.json.decode(body, type=LanePatch)) == settings
