"""An error that a server raises is raised by the client as the same class, over a real socket."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from duetime import errors
from duetime.api.access import tokens
from duetime.api.access.admission import Admission
from duetime.api.access.auth import Gate
from duetime.api.http.browsers import Browsers
from duetime.api.http.connection import ServerConnections
from duetime.api.http.endpoint import Call, Load
from duetime.api.http.exchange import Answer
from duetime.api.http.listener import Listener
from duetime.api.http.request_ids import Repeats
from duetime.api.http.router import Route, Router
from duetime.api.http.server import bind
from duetime.client.http.transport import Request, Transport
from duetime.clock import SystemClock
from duetime.errors import DuetimeError
from tests.integration.asynchronous import asynchronous


class Newer(errors.Unavailable):
    """An error of a later version."""

    code, status, retryable = 50377, 503, False
    hint = "Upgrade the client."


KINDS: dict[str, type[Exception]] = {kind.__name__: kind for kind in (*errors.EVERY, Newer, RuntimeError)}


async def handler(call: Call) -> Answer:
    raise KINDS[call.params["kind"]]("What happened.")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a server that raises the error that the path names."""
    route = Route(
        method="GET",
        path="/raise/{kind}",
        handler=handler,
        role=None,
        name="x",
        summary="",
        tag="",
        answers={},
    )
    gate, load = Gate(list, tokens.digest), Load(10, 1 << 20)
    connections = ServerConnections(Router([route], gate, load, Repeats(SystemClock()), Browsers()))
    with bind("127.0.0.1", 0) as sock, asyncio.Runner() as runner:
        loop, stop = runner.get_loop(), asyncio.Event()

        async def serve() -> None:
            listener = Listener(sock, Admission("http", 10), connections.make)
            listener.start()
            await stop.wait()
            listener.close()
            await connections.close(1)

        thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
        thread.start()
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        loop.call_soon_threadsafe(stop.set)
        thread.join()


async def raised(url: str, kind: type[Exception]) -> DuetimeError:
    client = Transport(url, tries=1)
    await client.open()
    with pytest.raises(DuetimeError) as caught:
        await client.send(Request("GET", f"/raise/{kind.__name__}"))
    await client.close()
    return caught.value


@pytest.mark.parametrize("kind", errors.EVERY, ids=lambda kind: kind.__name__)
@asynchronous
async def test_the_client_raises_the_class_that_the_server_raised(url, kind):
    error = await raised(url, kind)
    assert type(error) is kind
    assert (error.message, error.hint) == ("What happened.", kind.hint)
    assert (error.code, error.status, error.retryable) == (kind.code, kind.status, kind.retryable)


@asynchronous
async def test_an_error_of_a_newer_server_is_of_the_base_class_of_its_status(url):
    error = await raised(url, Newer)
    assert type(error) is errors.Unavailable
    assert (error.code, error.status, error.retryable) == (Newer.code, 503, False)
    assert (error.message, error.hint) == ("What happened.", Newer.hint)


@asynchronous
async def test_a_bug_of_the_server_is_a_duetime_error(url):
    error = await raised(url, RuntimeError)
    assert type(error) is DuetimeError and error.details["traceId"]
