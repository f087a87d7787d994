"""The lifespan helper in a real FastAPI application under a real uvicorn, told to stop with SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import urllib.error
from contextlib import asynccontextmanager

import pytest

from duetime import App
from duetime.contrib.asgi import lifespan
from duetime.errors import Closed
from tests.contrib.web_process import WAIT_S, Web
from tests.http.listener import Listener
from tests.http.server import ServerProcess
from tests.worker.waiting import until


def web_on(where: str, database: str) -> Web:
    return Web("tests.contrib.web:api", WEB_DUETIME=where, WEB_DATABASE=database)


def test_an_embedded_app_lives_and_stops_with_the_application(tmp_path):
    where, database, go = str(tmp_path / "data"), f"sqlite:///{tmp_path / 'web.db'}", tmp_path / "go"
    os.mkfifo(go)
    with web_on(where, database) as web:
        assert web.said[-1] and any("own begins 2" in line for line in web.said)
        assert web.ask("/add?a=1&b=2") == {"sum": 3, "greeting": "hello"}
        assert web.ask("/plain?a=3&b=4") == 7
        id = web.ask(f"/order?path={go}")
        web.says("slow begins")  # the relay has taken it
        web.process.send_signal(signal.SIGTERM)
        web.says("own ends")
        go.write_text("")  # what runs may finish
        assert web.process.wait(WAIT_S) in (0, -signal.SIGTERM), "".join(web.said)  # uvicorn's own choice
        web.says("Application shutdown complete")

    app = App(where)  # nobody holds the folder any more, and nothing is left

    @app.task(name="web.slow")
    def slow(path: str) -> str:
        raise AssertionError("it ended before")

    with app:
        assert app.handle(id).result("30s").wait() == "ended"
        assert app.handle(id).view().wait().attempts == 1


def test_an_app_on_a_server(server, tmp_path):
    with web_on(server.url, f"sqlite:///{tmp_path / 'web.db'}") as web:
        with Listener(server) as events:
            events.reached(web.ask("/order?path=never"), "DUE")  # the relay takes it there
        web.process.send_signal(signal.SIGTERM)
        web.says("Application shutdown complete")


def test_an_application_starts_before_its_server(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
    url = f"http://127.0.0.1:{port}"
    with Web("tests.contrib.early:api", WEB_DUETIME=url) as web:
        assert any(f"The app waits for the server: {url} cannot be reached" in line for line in web.said)
        with pytest.raises(urllib.error.HTTPError, match="503") as caught:
            web.ask("/later")
        with caught.value as answer:
            assert f"{url} cannot be reached: connection refused." in answer.read().decode()
        with ServerProcess(tmp_path / "data", "--port", port) as server:
            assert server.ask("GET", f"/v1/intents/{web.ask('/later')}").json["status"] == "SCHEDULED"
            until(lambda: server.ask("GET", "/v1/schedules/hourly").status == 200)
        web.stop()


def test_an_error_inside_the_lifespan_stops_the_app():
    app = App(":memory:")

    @asynccontextmanager
    async def broken(api: object):
        if api is None:
            raise ValueError("no")
        yield

    async def main() -> None:
        with pytest.raises(ValueError, match="no"):
            async with lifespan(app, broken)(None):
                pass
        with pytest.raises(Closed):
            await app.overview()
        async with lifespan(app)(None) as state:
            assert state == {"duetime": app}

    asyncio.run(main())
