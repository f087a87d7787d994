"""A sequence of responses, for async and plain programs: `async for` and plain `for`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class EventStream(Generic[T]):
    """Can be read once, by one reader. `aclose()` or `close()` ends it early."""

    def __init__(
        self, generator: AsyncGenerator[T, None], loop: Callable[[], asyncio.AbstractEventLoop]
    ) -> None:
        self._generator = generator
        self._loop = loop

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        if self._loop() is asyncio.get_running_loop():
            return await self._generator.__anext__()
        return await asyncio.wrap_future(self._elsewhere(self._next))

    async def aclose(self) -> None:
        if self._loop() is asyncio.get_running_loop():
            await self._generator.aclose()
        else:
            await asyncio.wrap_future(self._elsewhere(self._end))

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        try:
            found: T = self._elsewhere(self._next).result()
        except StopAsyncIteration:
            raise StopIteration from None
        return found

    def close(self) -> None:
        self._elsewhere(self._end).result()

    async def _next(self) -> T:
        return await self._generator.__anext__()

    async def _end(self) -> None:
        await self._generator.aclose()

    def _elsewhere(self, step: Callable[[], Coroutine[Any, Any, object]]) -> Future[Any]:
        """Run a step on the client's event loop, from outside of it."""
        loop = self._loop()
        return asyncio.run_coroutine_threadsafe(step(), loop)
