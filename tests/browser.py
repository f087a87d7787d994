"""A real browser for tests: Chromium without a window, told what to do by its own protocol."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_LISTENS = re.compile(r"DevTools listening on ws://([^/]+)/")
WITHIN_S = 60


class Browser:
    """One process. Names that are mapped lead to this machine, whoever owns them."""

    def __init__(self, program: str, *names: str) -> None:
        self._program = program
        self._names = names
        self._place = ""

    @contextlib.contextmanager
    def running(self) -> Iterator[Browser]:
        rules = ", ".join(f"MAP {name} 127.0.0.1" for name in self._names)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            process = subprocess.Popen(
                [
                    self._program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                    "--disable-dev-shm-usage", "--disable-background-networking", "--no-proxy-server",
                    "--remote-debugging-port=0", f"--user-data-dir={folder}",
                    f"--host-resolver-rules={rules}", "about:blank",
                ],
                stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                env={**os.environ, "HOME": folder},
            )  # fmt: skip
            assert process.stderr is not None
            with process.stderr as words:
                try:
                    said = []
                    for line in words:
                        said.append(line)
                        if found := _LISTENS.search(line):
                            self._place = found.group(1)
                            break
                    assert self._place, f"Chromium did not start: {said}"
                    yield self
                finally:
                    process.terminate()
                    for _ in words:
                        pass  # until it is gone
                    process.wait(WITHIN_S)

    def evaluate(self, url: str, script: str) -> Any:
        """What a script, the body of an async function, returns when it runs in the page of this address."""
        return asyncio.run(self._evaluate(url, f"(async () => {{ {script} }})()"))

    async def _evaluate(self, url: str, expression: str) -> Any:
        async with asyncio.timeout(WITHIN_S), self._tab() as page:
            await page.ask("Page.enable")
            await page.ask("Page.navigate", url=url)
            await page.event("Page.loadEventFired")
            found = await page.ask(
                "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
            )
            assert "exceptionDetails" not in found, found["exceptionDetails"]
            return found["result"].get("value")

    @contextlib.asynccontextmanager
    async def _tab(self) -> AsyncIterator[_Page]:
        async with aiohttp.ClientSession() as session:
            async with session.put(f"http://{self._place}/json/new?about:blank") as answer:
                about = await answer.json()
            async with session.ws_connect(about["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield _Page(socket)
            async with session.get(f"http://{self._place}/json/close/{about['id']}"):
                pass


class _Page:
    """Requests to one tab, and what it tells."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self._events: list[str] = []

    async def ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        while True:
            told = json.loads((await self._socket.receive()).data)
            if told.get("id") == self._number:
                assert "error" not in told, told
                return told["result"]
            self._events.append(told.get("method", ""))

    async def event(self, name: str) -> None:
        while name not in self._events:
            self._events.append(json.loads((await self._socket.receive()).data).get("method", ""))
