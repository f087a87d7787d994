"""A TCP proxy in front of a server: connections can be cut, refused, or lose their answers."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from urllib.parse import urlsplit


class Proxy:
    """Forwards bytes both ways until it is told otherwise."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname, parts.port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._writers: set[asyncio.StreamWriter] = set()
        self._lost = 0
        self._refused = 0
        self._changed = threading.Condition()
        self.connections = 0
        self.answered = 0
        """Pieces of answers that were handed on."""
        self.url = ""

    def lose_answers(self, number: int) -> None:
        """The next answers do not arrive: the server has done its work, and the connection breaks."""
        self._lost = number

    @property
    def to_lose(self) -> int:
        """Answers that are still to be lost."""
        return self._lost

    async def all_lost(self) -> None:
        """Wait until every answer that was to be lost is lost."""
        await self.until(lambda: not self._lost)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a number of this proxy."""

        def wait() -> bool:
            with self._changed:
                return self._changed.wait_for(condition, 30)

        assert await asyncio.to_thread(wait)

    def refuse(self, number: int) -> None:
        """The next connections are closed before anything is read."""
        self._refused = number

    def cut(self) -> None:
        """Break every connection there is."""

        async def cut() -> None:
            for writer in list(self._writers):
                writer.transport.abort()

        asyncio.run_coroutine_threadsafe(cut(), self._loop).result()

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *exc: object) -> None:
        self.cut()
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> asyncio.Server:
        return await asyncio.start_server(self._connected, "127.0.0.1", 0)

    async def _stop(self) -> None:
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with self._changed:
            self.connections += 1
            self._changed.notify_all()
        if self._refused > 0:
            self._refused -= 1
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        there = asyncio.ensure_future(self._forward(reader, far_writer, answers=False))
        back = asyncio.ensure_future(self._forward(far_reader, writer, answers=True))
        try:
            await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            there.cancel()
            back.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
            for each in (writer, far_writer):
                each.transport.abort()
                self._writers.discard(each)

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(65536):
                with self._changed:
                    if answers and self._lost > 0:
                        self._lost -= 1
                        self._changed.notify_all()
                        return
                    self.answered += answers
                    self._changed.notify_all()
                writer.write(chunk)
                await writer.drain()
