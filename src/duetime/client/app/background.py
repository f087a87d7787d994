"""An event loop in a separate thread, through which plain programs use async code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """Runs from `start` to `stop`. If the first coroutine fails, nothing keeps running."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._ready = threading.Event()
        self._failed: BaseException | None = None

    def start(self, first: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Start the loop with this coroutine. If it fails, its error is raised here and the loop ends."""
        self._first = first
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            self._thread.join()
            raise self._failed

    def stop(self, last: Coroutine[Any, Any, object]) -> None:
        """End with this."""
        try:
            asyncio.run_coroutine_threadsafe(last, self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._first())
        except BaseException as error:
            self._failed = error
        self._ready.set()
        if self._failed is None:
            self._loop.run_forever()
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()
