"""Python's names and values as the API's JSON and queries."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from duetime.client.http import requests
from duetime.errors import InvalidField
from duetime.wire.intent import Callback, Redelivery

NEW_YEAR = datetime(2030, 1, 1, tzinfo=UTC)


def test_names_become_the_apis_and_times_text():
    said = json.loads(
        requests.body(
            {
                "intent_id": "a",
                "execute_at": NEW_YEAR,
                "deadline": "2030-01-01T02:00:00+01:00",
                "callback": {"url": "http://x", "headers": {"x_y": "kept"}},
                "redelivery": {"max_attempts": 3, "initialDelayMs": 10},
                "payload": {"snake_case": "kept"},
                "tags": {"a_b": "c"},
            }
        )
    )
    assert said == {
        "intentId": "a",
        "executeAt": "2030-01-01T00:00:00.000Z",
        "deadline": "2030-01-01T01:00:00.000Z",
        "callback": {"url": "http://x", "headers": {"x_y": "kept"}},
        "redelivery": {"maxAttempts": 3, "initialDelayMs": 10},
        "payload": {"snake_case": "kept"},
        "tags": {"a_b": "c"},
    }


def test_models_may_be_given_for_objects():
    fields = {"callback": Callback(url="http://x"), "redelivery": Redelivery(max_attempts=2)}
    assert json.loads(requests.body(fields)) == {
        "callback": {"url": "http://x"},
        "redelivery": {"maxAttempts": 2},
    }


def test_none_removes_a_deadline():
    assert json.loads(requests.body({"deadline": None})) == {"deadline": None}


def test_a_moment_without_a_zone_is_refused():
    with pytest.raises(InvalidField, match="no time zone"):
        requests.body({"execute_at": datetime(2030, 1, 1)})


def test_a_filter_is_a_query():
    pairs = requests.query(
        {"status": ["DUE", "SCHEDULED"], "tags": {"a": "b&c"}, "since": NEW_YEAR, "until": 1_900_000_000},
        limit=5,
        cursor=None,
        intent_id="x",
    )
    assert pairs == [
        ("status", "DUE,SCHEDULED"),
        ("tag.a", "b&c"),
        ("from", "2030-01-01T00:00:00.000Z"),
        ("to", "2030-03-17T17:46:40.000Z"),
        ("limit", "5"),
        ("intentId", "x"),
    ]


def test_a_filter_is_an_object():
    filter = {"queue": "mail", "tags": {"a": "b"}, "since": NEW_YEAR}
    assert requests.filter_body(filter) == {
        "queue": "mail",
        "from": "2030-01-01T00:00:00.000Z",
        "tags": {"a": "b"},
    }


def test_any_id_is_one_part_of_the_path():
    assert requests.path("intents", "a/../b?c#d") == "/v1/intents/a%2F..%2Fb%3Fc%23d"
    assert requests.path("admin", "lanes", "task:default", "pause") == "/v1/admin/lanes/task:default/pause"
    with pytest.raises(InvalidField, match="empty"):
        requests.path("intents", "")
