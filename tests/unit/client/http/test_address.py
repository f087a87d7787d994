"""Which server, and with what token."""

from __future__ import annotations

import sys

import pytest

from duetime import App
from duetime.client.http.address import token_of, url_of
from duetime.client.http.client import Client
from duetime.errors import BadConfig, Closed


def test_the_environment_is_used_when_no_address_is_given(monkeypatch):
    assert url_of(None) == "http://localhost:7928" and token_of(None) is None
    monkeypatch.setenv("DUETIME_URL", "https://time.example:8443/base/")
    monkeypatch.setenv("DUETIME_TOKEN", "duetime_abc")
    assert url_of(None) == "https://time.example:8443/base" and token_of(None) == "duetime_abc"
    assert url_of("http://[::1]:7928") == "http://[::1]:7928" and token_of("other") == "other"


@pytest.mark.parametrize(
    "url", ["", "localhost:7928", "ftp://x", "http://", "http://x:port", "http://x?a=1", "/tmp/folder"]
)
def test_an_invalid_address_is_refused(url):
    with pytest.raises(BadConfig):
        url_of(url)


def test_a_password_in_an_address_is_refused_and_not_repeated():
    with pytest.raises(BadConfig) as caught:
        url_of("http://me:hunter2@x")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "ünicode"])
def test_an_invalid_token_is_refused_and_not_repeated(token):
    with pytest.raises(BadConfig) as caught:
        token_of(token)
    assert token not in str(caught.value)


def test_a_client_does_not_show_its_token():
    client = Client("http://x", token="duetime_secret")
    assert "duetime_secret" not in repr(client)


def test_a_client_must_be_open():
    client = Client("http://x")
    with pytest.raises(Closed, match="not open"):
        client.get("a").wait()
    with pytest.raises(Closed):
        next(iter(client.events()))


def test_a_token_is_for_a_server():
    with pytest.raises(BadConfig, match="this app uses a folder"):
        App(":memory:", token="x")


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "httptools", None)
    with pytest.raises(BadConfig, match="needs httptools") as caught, Client("http://127.0.0.1:1"):
        raise AssertionError("it did not open")
    assert "duetime[client]" in caught.value.hint


def test_the_client_is_found_where_app_is():
    import duetime

    assert duetime.Client is Client
    with pytest.raises(AttributeError):
        duetime.Nothing  # noqa: B018
