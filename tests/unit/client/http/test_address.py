"""Which server, and with what token."""

from __future__ import annotations

import sys

import pytest

from duetime import App
from duetime.client.http.address import meant_url, token_of, url_of
from duetime.client.http.client import Client
from duetime.errors import BadConfig, Closed


def test_the_environment_is_used_when_no_address_is_given(monkeypatch):
    assert url_of(None) == "http://localhost:7928" and token_of(None) is None
    monkeypatch.setenv("DUETIME_URL", "https://time.example:8443/base/")
    monkeypatch.setenv("DUETIME_TOKEN", "duetime_abc")
    assert url_of(None) == "https://time.example:8443/base" and token_of(None) == "duetime_abc"
    assert url_of("http://[::1]:7928") == "http://[::1]:7928" and token_of("other") == "other"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("localhost:7928", "http://localhost:7928"),
        ("localhost", "http://localhost:7928"),
        ("LOCALHOST/", "http://LOCALHOST:7928"),
        ("jobs.example.com:80", "http://jobs.example.com:80"),
        ("127.0.0.1", "http://127.0.0.1:7928"),
        ("0.0.0.0:7", "http://0.0.0.0:7"),
        ("::1", "http://[::1]:7928"),
        ("[::1]", "http://[::1]:7928"),
        ("[::1]:7928", "http://[::1]:7928"),
        ("duetime-data", None),
        ("example.com", None),
        (":memory:", None),
        ("./localhost", None),
        ("/data/localhost:7928", None),
        ("data:today", None),
        ("", None),
    ],
)
def test_a_host_without_a_scheme_is_recognised(text, meant):
    assert meant_url(text) == meant


def test_the_error_names_the_url_to_write():
    with pytest.raises(BadConfig) as caught:
        url_of("localhost:7928")
    assert caught.value.hint == "Write http://localhost:7928."


@pytest.mark.parametrize("where", ["localhost:7928", "localhost", "127.0.0.1:80", "jobs:7928"])
def test_an_app_on_a_bare_host_is_refused(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadConfig) as caught:
        App(where)
    assert str(meant_url(where)) in caught.value.hint and f"./{where}" in caught.value.hint
    with App(f"./{where}"):  # a folder of this name
        pass
    with App(tmp_path / where):
        pass


@pytest.mark.parametrize(
    "where", ["", "  ", "http:/host:7928", "http//host:7928", "HTTP:host:7928", "unix:/tmp/x", "//host:7928"]
)
def test_a_mistyped_address_does_not_become_a_folder(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadConfig):
        App(where)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["https", "http-data", "./http:/x", ":memory:"])
def test_a_folder_may_begin_like_a_url(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    App(where)


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
