"""Pages of other sites are told from programs and from pages of this server by their headers alone."""

from __future__ import annotations

import socket

import pytest

from duetime.api.http.browsers import Browsers, names_in
from duetime.errors import BadConfig, BadHttp, ForeignHost, ForeignPage

HOST = (b"host", b"localhost:7928")
OURS = Browsers(["192.0.2.7", " Duetime.Example. ", ""])


def judged(*headers: tuple[bytes, bytes], browsers: Browsers = OURS, version: str = "1.1") -> type | None:
    error = browsers.judge(headers, version)
    return None if error is None else type(error)


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "localhost:7928", "LOCALHOST:1", "localhost.", "127.0.0.1:7928", "127.0.0.1",
        "[::1]:7928", "[::1]", "192.0.2.7:80", "10.1.2.3", "[2001:db8::1]", "duetime.example",
        "duetime.example:443",
        "DUETIME.example.:443", socket.gethostname(), f"{socket.gethostname()}:7928",
    ],
)  # fmt: skip
def test_names_of_this_server(host):
    assert judged((b"host", host.encode())) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:7928", "localhost.evil.example", "duetime.example.evil.example", "",
        ":7928",
        "127.0.0.1.evil.example", "127.0.0.1@evil.example", "localhost:evil", "[::1].evil.example", "::1",
        "sub.duetime.example", "1.2.3", "0x7f.1", "[localhost]", "[127.0.0.1]", "a b",
        "localhost,evil.example",
    ],
)  # fmt: skip
def test_names_of_others(host):
    """A page that was loaded from there sends it, wherever the name leads by now."""
    assert judged((b"host", host.encode())) is ForeignHost
    assert host.encode() not in OURS.known


@pytest.mark.parametrize(
    ("hosts", "version", "error"),
    [(0, "1.1", BadHttp), (1, "1.1", None), (2, "1.1", BadHttp), (0, "1.0", None), (2, "1.0", BadHttp)],
)
def test_one_host(hosts, version, error):
    assert judged(*[HOST] * hosts, version=version) is error


@pytest.mark.parametrize(
    ("site", "error"),
    [
        (b"same-origin", None),
        (b"none", None),
        (b"cross-site", ForeignPage),
        (b"same-site", ForeignPage),
        (b"", ForeignPage),
        (b"new-word", ForeignPage),
    ],
)
def test_requests_are_judged_by_the_site_that_the_browser_names(site, error):
    assert judged(HOST, (b"sec-fetch-site", site)) is error


@pytest.mark.parametrize(
    "origin",
    [
        "null", "", "http://evil.example", "http://localhost", "http://localhost:3000", "https://localhost:3000",
        "file://", "localhost:7928", "http://localhost:7928.evil.example", "http://evil.example/localhost:7928",
        "http://127.0.0.1:7928", "chrome-extension://localhost:7928",
    ],
)  # fmt: skip
def test_foreign_origins(origin):
    assert judged(HOST, (b"origin", origin.encode())) is ForeignPage


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:7928", "http://localhost:7928"),
        ("LocalHost:7928", "http://localhost:7928"),
        ("duetime.example", "https://duetime.example"),
        ("[::1]:7928", "http://[::1]:7928"),
        ("127.0.0.1:7928", "https://duetime.example"),  # a proxy put its own address there
    ],
)
def test_pages_of_its_own(host, origin):
    assert judged((b"host", host.encode()), (b"origin", origin.encode())) is None


def test_two_origins_are_none():
    own = (b"origin", b"http://localhost:7928")
    assert judged(HOST, own) is None
    assert judged(HOST, own, own) is ForeignPage


def test_with_tls_a_page_without_is_foreign():
    secure = Browsers(["duetime.example"], tls=True)
    host = (b"host", b"duetime.example")
    assert judged(host, (b"origin", b"https://duetime.example"), browsers=secure) is None
    assert judged(host, (b"origin", b"http://duetime.example"), browsers=secure) is ForeignPage


def test_spellings_that_are_remembered_are_bounded():
    browsers = Browsers()
    for number in range(3_000):
        assert judged((b"host", b"10.0.%d.%d" % (number // 256, number % 256)), browsers=browsers) is None
    assert len(browsers.known) == 1_000


def test_the_setting_lists_names():
    assert names_in("") == []
    assert names_in(" duetime, Jobs.Example.com. ,my_service,10.0.0.7,[::1],") == [
        "duetime", "jobs.example.com", "my_service", "10.0.0.7", "[::1]",
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", ["*", "*.example.com", "http://duetime", "duetime:7928", "a b", "ok,a/"])
def test_an_invalid_host_is_refused(wrong):
    with pytest.raises(BadConfig, match="is not a host name"):
        names_in(wrong)
