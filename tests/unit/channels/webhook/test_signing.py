"""Signatures, against the reference implementation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from duetime.channels.webhook.signing import Signer
from duetime.clock import SystemClock
from duetime.errors import BadConfig

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@given(st.text(max_size=200), st.from_regex(r"[A-Za-z0-9_.:-]{1,128}", fullmatch=True))
def test_the_reference_accepts_them(body, id):
    data = body.encode()
    headers = Signer(SECRET).headers(id, SystemClock().now_ms(), data)
    Webhook(SECRET).verify(data, headers, json_parse=False)


def test_the_example_of_the_specification():
    headers = Signer(SECRET).headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330_999, b'{"test": 2432232314}'
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_padding_may_be_left_out():
    padded = Signer("whsec_" + "A" * 35 + "=").headers("i", 0, b"")
    assert padded == Signer("whsec_" + "A" * 35).headers("i", 0, b"")


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "begin with whsec_"),
        ("whsec_not base64!", "not base64"),
        ("whsec_ü", "not base64"),
        ("whsec_", "0 bytes"),
        ("whsec_AAAA", "3 bytes"),
        ("whsec_" + "A" * 100, "75 bytes"),
    ],
)
def test_bad_secrets(secret, text):
    with pytest.raises(BadConfig, match=text):
        Signer(secret)
