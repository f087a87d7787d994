"""Where a server takes workers."""

from __future__ import annotations

import pytest

from duetime.client.link import address_of
from duetime.errors import BadConfig


@pytest.mark.parametrize(
    ("url", "port", "address"),
    [
        ("http://localhost:7928", None, "grpc://localhost:7929"),
        ("http://localhost:7928", 5, "grpc://localhost:5"),
        ("http://jobs", None, "grpc://jobs:7929"),
        ("https://jobs:8443/", None, "grpcs://jobs:8444"),
        ("http://[::1]:80", None, "grpc://[::1]:81"),
        ("grpc://jobs:1", 5, "grpc://jobs:1"),
        ("grpcs://jobs:1", None, "grpcs://jobs:1"),
    ],
)
def test_it_is_found_from_the_address_of_the_server(url, port, address):
    assert address_of(url, port) == address


@pytest.mark.parametrize("url", ["", "jobs", "ftp://jobs", "grpc://jobs", "http://jobs:port", "http://"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(BadConfig):
        address_of(url, None)
