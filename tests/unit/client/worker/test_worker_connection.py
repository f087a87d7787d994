"""Where a server takes workers."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import pytest

from duetime.client.worker.worker_connection import Link, address_of
from duetime.client.worker.worker_options import ServerAccess
from duetime.errors import BadConfig
from duetime.protocol.outcome import Done, Settlement
from duetime.v1 import deliveries_pb2 as pb


class Taker:
    """Wants nothing."""

    def opened(self, link: Link, credits_max: int) -> None:
        pass

    def closed(self, link: Link, number: int) -> None:
        pass


def made() -> Link:
    taker: Any = Taker()
    options: Any = None
    return Link(ServerAccess("grpc://localhost:1", None), options, taker)


class Broken:
    """A call whose connection is gone."""

    async def write(self, message: pb.ClientMessage) -> None:
        raise asyncio.InvalidStateError


def test_outcomes_that_could_not_be_written_are_all_sent_again():
    """Of several messages only the one that failed was: the others were lost, and ran again."""
    link = made()
    outcomes = [Settlement(f"i-{number}", 1, Done(None)) for number in range(10_000)]
    link.send(outcomes, {})

    async def main() -> None:
        with pytest.raises(asyncio.InvalidStateError):
            await link._empty(Broken())

    asyncio.run(main())
    assert len(link._unanswered) > 1
    assert [each for part in link._unanswered.values() for each in part] == outcomes


def test_only_deliveries_of_the_newest_earlier_connection_are_named():
    """A taker that is behind told of the end before: what came since was taken for lost, and ran again."""

    async def main() -> None:
        link = made()
        link._loop = asyncio.get_running_loop()
        for _ in range(2):
            link._welcome(pb.Welcome(consumer="w", heartbeat_ms=60_000))
            link._down()
        hello = pb.Hello()
        link.holding = 1, [("i", 1)]
        link._name_earlier(hello)
        assert not hello.HasField("holding")
        link.holding = 2, [("i", 1), ("j", 1)]
        link._name_earlier(hello)
        assert [each.intent_id for each in hello.holding.held] == ["i", "j"]

    asyncio.run(main())


def test_outcomes_that_come_while_it_reconnects_are_not_lost():
    """They come from another thread, between any two steps."""
    count, done = 20_000, Done(None)
    every_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    async def main() -> None:
        link = made()
        link._loop = asyncio.get_running_loop()
        link._earlier.append("w")

        def come() -> None:
            for number in range(count):
                link.send([Settlement(f"i-{number}", 1, done)], {})

        thread = threading.Thread(target=come)
        thread.start()
        while thread.is_alive():
            link._name_earlier(pb.Hello())
            link._welcome(pb.Welcome(consumer="w", heartbeat_ms=60_000))
        thread.join()
        said = [each.id for part, _ in link._outbox for each in part]
        assert said == [f"i-{number}" for number in range(count)]
        link._down()

    try:
        asyncio.run(main())
    finally:
        sys.setswitchinterval(every_s)


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
def test_the_grpc_address_is_found_from_the_address_of_the_server(url, port, address):
    assert address_of(url, port) == address


@pytest.mark.parametrize("url", ["", "jobs", "ftp://jobs", "grpc://jobs", "http://jobs:port", "http://"])
def test_an_invalid_address_is_refused(url):
    with pytest.raises(BadConfig):
        address_of(url, None)
