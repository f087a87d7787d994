"""Terms are shown as they are declared: nothing is null or empty only where the declaration says so."""

from __future__ import annotations

import pytest
from msgspec import NODEFAULT, Raw

from duetime.protocol.terms import Stream, Terms
from duetime.wire import terms
from duetime.wire.terms import Carried


@pytest.mark.parametrize(
    ("empty", "value", "shown"),
    [
        (NODEFAULT, 0, 0),
        (NODEFAULT, 7, 7),
        (None, 0, None),
        (None, None, None),
        (None, 7, 7),
        ({}, None, {}),
        ({}, {"a": "b"}, {"a": "b"}),
    ],
)
def test_a_stored_value_is_shown_as_declared(empty, value, shown):
    assert Carried("n", "n", None, 5, empty).shown(value) == shown


def test_terms_without_options_have_no_tags_no_keys_and_no_time_to_live():
    shown = terms.shown(Terms(Stream("s"), "stream:s"), Raw)
    assert shown["tags"] == {} and shown["fairness_weight"] == 1
    assert shown["result_ttl_ms"] is None and shown["fairness_key"] is None and shown["shard_key"] is None
    assert shown["expired_action"] == "DISCARD" and shown["after_on"] == "SUCCESS"
