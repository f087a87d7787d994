"""Which urls and addresses a webhook may go to."""

from __future__ import annotations

import asyncio

import pytest

from duetime.channels.webhook.addresses import AddressRefused, GuardedResolver, problem_with, refused


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "https://example.com:8443/a/b?c=d#e",
        "http://localhost:1/",
        "http://127.0.0.1/",
        "http://[::1]:80/",
        "http://münchen.example/ü",
        "HTTP://EXAMPLE.COM/",
    ],
)
def test_a_good_url(url):
    assert problem_with(url) is None


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("", "http://"),
        ("example.com/hook", "http://"),
        ("//example.com/hook", "http://"),
        ("file:///etc/passwd", "http://"),
        ("gopher://example.com/", "http://"),
        ("http://", "host"),
        ("http:///hook", "host"),
        ("https://:443/", "host"),
        ("http://me@example.com/", "credentials"),
        ("http://me:secret@example.com/", "credentials"),
        ("http://:secret@example.com/", "credentials"),
        ("http://example.com:0/", "port"),
        ("http://example.com:65536/", "read"),
        ("http://example.com:x/", "read"),
        ("http://[::1/", "read"),
        ("http://exa mple.com/", "space"),
        ("http://example.com/\r\nX: y", "control"),
        ("http://example.com/\x00", "control"),
    ],
)
def test_a_bad_url(url, word):
    problem = problem_with(url)
    assert problem is not None and word in problem


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.0.1",
        "169.254.169.254.",
        "fe80::1",
        "fe80::1%eth0",
        "febf:ffff::1",
        "::ffff:169.254.169.254",
        "::ffff:a9fe:a9fe",
        "::169.254.169.254",
        "64:ff9b::169.254.169.254",
        "2002:a9fe:a9fe::1",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "fd00:c1::a9fe:a9fe",
        "fd00:42::42",
        "169.254.170.2",
        "169.254.170.23",
        "::ffff:168.63.129.16",
        "::ffff:0:169.254.169.254",
        "64:ff9b::100.100.100.200",
        "64:ff9b:1::169.254.169.254",
        "64:ff9b:1:a9fe:a9:fe00::",  # with a prefix of 48 bits
        "64:ff9b:1:a9:fe:a9fe::",  # of 56
        "64:ff9b:1::a9:fea9:fe00:0",  # of 64
        "2002:a83f:8110::",
        "2001:0:a9fe:a9fe::",  # Teredo: its server
        "2001:0:102:304:0:0:5601:5601",  # and its client, inverted
        "2001:db8::5efe:169.254.169.254",
        "2001:db8::200:5efe:192.0.0.192",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
    ],
)
def test_refused_addresses(host):
    assert refused(host) is not None


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "10.0.0.1", "192.168.1.1", "8.8.8.8", "::1", "fd00::1", "example.com", "",
             "64:ff9b::8.8.8.8", "64:ff9b:1::808:808", "2002:808:808::1", "2001:0:808:808::f7f7:f7f7",
             "fd00:ec2::1", "2a00:1450:4001:810::200e"]
)  # fmt: skip
def test_other_addresses_and_names(host):
    assert refused(host) is None


def test_resolved_addresses_are_checked():
    async def main():
        guarded, open_ = GuardedResolver(True), GuardedResolver(False)
        found = await guarded.resolve("localhost", 80)
        assert {each["host"] for each in found} <= {"127.0.0.1", "::1"}
        assert all(each["port"] == 80 for each in found)
        with pytest.raises(AddressRefused, match="link-local"):
            await guarded.resolve("0xa9fea9fe", 80)
        assert [each["host"] for each in await open_.resolve("0xa9fea9fe", 80)] == ["169.254.169.254"]
        with pytest.raises(OSError):
            await guarded.resolve("a" * 70 + ".example", 80)
        await guarded.close()
        await open_.close()

    asyncio.run(main())
