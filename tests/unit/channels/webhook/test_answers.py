"""What answers mean, as pure functions."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.channels.webhook.answers import (
    WebhookResponse,
    not_before_ms,
    outcome_of,
    outcomes_of_batch,
    readable,
)
from duetime.protocol.outcome import Done, Failed, Outcome, Rejected

NOW_MS = 1_893_456_000_000


@pytest.mark.parametrize("status", range(200, 300, 7))
def test_every_2xx_is_done(status):
    assert outcome_of(WebhookResponse(status), NOW_MS, 100) == Done()


@pytest.mark.parametrize("status", [408, 425, 429, *range(500, 700, 9)])
def test_retried_statuses(status):
    outcome = outcome_of(WebhookResponse(status, retry_after="1"), NOW_MS, 100)
    assert isinstance(outcome, Failed)
    assert outcome.http_status == status and outcome.not_before_ms == NOW_MS + 1_000


@pytest.mark.parametrize("status", [300, 301, 304, 307, 400, 401, 403, 404, 409, 410, 413, 422, 451, 499])
def test_rejected_statuses(status):
    outcome = outcome_of(WebhookResponse(status, b"because", retry_after="1"), NOW_MS, 100)
    assert isinstance(outcome, Rejected)
    assert outcome.http_status == status and "because" in outcome.message


@pytest.mark.parametrize(
    ("body", "whole", "kept"),
    [
        (b'{"a":1}', True, True),
        (b" 7 ", True, True),
        (b"null", True, True),
        (b'{"a":1}', False, False),
        (b"", True, False),
        (b"  ", True, False),
        (b"NaN", True, False),
        (b'{"a":1', True, False),
        (b'"\xed\xa0\x80"', True, False),
        (b'"' + b"x" * 98 + b'"', True, True),
        (b'"' + b"x" * 99 + b'"', True, False),
    ],
)
def test_a_result_is_json_within_the_limit(body, whole, kept):
    assert outcome_of(WebhookResponse(200, body, whole), NOW_MS, 100) == Done(body if kept else None)


@pytest.mark.parametrize(
    ("text", "after_ms"),
    [
        (None, None), ("", None), ("soon", None), ("1.5", None), ("-1", None), ("0", None), ("١", None),
        ("Fri, 99 Foo 2030", None), (" 7 ", 7_000), ("86401", 86_400_000), ("9" * 400, 86_400_000),
        ("Tue, 01 Jan 2030 00:00:10 GMT", 10_000), ("Tue, 01 Jan 2030 01:00:10 +0100", 10_000),
        ("Tue, 01 Jan 2999 00:00:00 GMT", 86_400_000), ("Mon, 01 Jan 1990 00:00:00 GMT", None),
    ],
)  # fmt: skip
def test_retry_after(text, after_ms):
    assert not_before_ms(text, NOW_MS) == (0 if after_ms is None else NOW_MS + after_ms)


@given(st.text())
def test_retry_after_never_raises(text):
    assert 0 <= not_before_ms(text, NOW_MS) <= NOW_MS + 86_400_000


@given(st.text(st.characters()), st.integers(1, 50))
def test_readable_text_can_be_stored(text, chars):
    line = readable(text, chars)
    assert len(line) <= chars and "\n" not in line
    assert msgspec.json.decode(msgspec.json.encode(line)) == line


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "b", "ACKED", "RETRY", "EXPIRED"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["results", "intentId", "status", "error"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.one_of(JSON.map(msgspec.json.encode), st.binary()), st.booleans(), st.sampled_from([200, 404, 503]))
def test_every_item_has_an_outcome_for_any_response_to_its_batch(body, whole, status):
    outcomes = outcomes_of_batch(WebhookResponse(status, body, whole), ["a", "b"], NOW_MS)
    assert set(outcomes) == {"a", "b"}
    assert all(isinstance(each, Outcome) for each in outcomes.values())


def test_the_last_result_of_an_item_counts():
    body = b'{"results":[{"intentId":"a","status":"ACKED"},{"intentId":"a","status":"RETRY"}]}'
    assert isinstance(outcomes_of_batch(WebhookResponse(200, body), ["a"], NOW_MS)["a"], Failed)
