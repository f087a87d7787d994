"""Signatures, against the reference implementation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from duetime.channels.webhook import secrets
from duetime.channels.webhook.secrets import Signers
from duetime.channels.webhook.signing import Signer, new_secret
from duetime.clock import SystemClock
from duetime.errors import BadConfig, InvalidField
from duetime.testing.time import ManualClock

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@given(st.text(max_size=200), st.from_regex(r"[A-Za-z0-9_.:-]{1,128}", fullmatch=True))
def test_the_reference_accepts_them(body, id):
    data = body.encode()
    headers = Signer([SECRET]).headers(id, SystemClock().now_ms(), data)
    Webhook(SECRET).verify(data, headers, json_parse=False)


def test_the_example_of_the_specification():
    headers = Signer([SECRET]).headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330_999, b'{"test": 2432232314}'
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_padding_may_be_left_out():
    padded = Signer(["whsec_" + "A" * 35 + "="]).headers("i", 0, b"")
    assert padded == Signer(["whsec_" + "A" * 35]).headers("i", 0, b"")


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
        Signer([secret])


def test_while_one_secret_replaces_another_both_verify():
    newer = new_secret()
    headers = Signer([newer, SECRET]).headers("msg", SystemClock().now_ms(), b"{}")
    assert headers["webhook-signature"].count("v1,") == 2
    for secret in (newer, SECRET):
        Webhook(secret).verify(b"{}", headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret()).verify(b"{}", headers)
    with pytest.raises(BadConfig, match="at most 2"):
        Signer([newer, SECRET, new_secret()])


def test_the_longest_url_decides(tmp_path):
    clock = ManualClock()
    host, _ = secrets.add(tmp_path, "https://shop.example")
    path, _ = secrets.add(tmp_path, "https://shop.example:443/hooks")
    signers = Signers(SECRET, clock, tmp_path)
    for endpoint, secret in [
        ("https://shop.example/", host),
        ("https://shop.example/hooksother", host),
        ("https://shop.example/hooks", path),
        ("https://shop.example/hooks/new", path),
        ("https://shop.example.evil/hooks", SECRET),
        ("http://shop.example/hooks", SECRET),
    ]:
        signer = signers.of(endpoint)
        assert signer is not None
        assert signer.headers("i", 0, b"x") == Signer([secret]).headers("i", 0, b"x"), endpoint
    assert Signers("", clock, tmp_path).of("https://other.example/") is None


def test_a_running_server_takes_changes_of_the_file(tmp_path, caplog):
    clock, url = ManualClock(), "https://shop.example/"
    signers = Signers("", clock, tmp_path)

    def signatures():
        clock.set_ms(clock.now_ms() + 1_000)
        signer = signers.of(url)
        return 0 if signer is None else signer.headers("i", 0, b"")["webhook-signature"].count("v1,")

    assert signatures() == 0
    first, _ = secrets.add(tmp_path, url)
    assert signatures() == 1
    second, _ = secrets.add(tmp_path, url)
    assert signatures() == 2
    with pytest.raises(InvalidField, match="two valid secrets"):
        secrets.add(tmp_path, url)
    assert secrets.retire(tmp_path, url).secrets == (second,)
    assert signatures() == 1
    file = tmp_path / secrets.FILE_NAME
    assert file.stat().st_mode & 0o077 == 0
    kept = file.read_bytes()
    file.write_text("{")
    assert signatures() == 1 and "unchanged" in caplog.text
    with pytest.raises(BadConfig):
        Signers("", clock, tmp_path)
    file.write_bytes(kept)
    assert signatures() == 1
    secrets.delete(tmp_path, url)
    assert signatures() == 0
    assert first not in caplog.text and second not in caplog.text


@pytest.mark.parametrize("url", ["shop.example", "ftp://shop.example", "https://shop.example/?a=b", ""])
def test_a_secret_is_for_a_url(tmp_path, url):
    with pytest.raises(InvalidField):
        secrets.add(tmp_path, url)


def test_an_unknown_endpoint_is_named(tmp_path):
    for change in (secrets.retire, secrets.delete):
        with pytest.raises(InvalidField, match="no secret for https://shop"):
            change(tmp_path, "https://shop.example")
