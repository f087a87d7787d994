"""The relay: takes rows out of an outbox and hands them to Duetime, in order, for as long as it runs.

Rows are sent before they are deleted, so a crash in between sends them again, and their keys see to it that
nothing is done twice. A row that is refused is kept with the reason and does not hold up the others; a server
that is away, or says "not now", is asked again with patience.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

from duetime.client.app.app import App
from duetime.client.app.call import Call
from duetime.clock import Clock, SystemClock
from duetime.contrib.outbox.rows import ERROR_CHARS_MAX, Count, Row, Rows, Settled
from duetime.contrib.outbox.sink import Door, Said
from duetime.errors import DuetimeError, InvalidField

BATCH = 500
# How long a new row waits at most for a relay that was not told of it. One small query each time.
POLL_S = 1.0
PAUSE_S, PAUSE_S_MAX = 0.2, 30.0
_logger = logging.getLogger("duetime")


class Relay:
    """From one outbox into one app. Started inside `with app:`, or alone with `run()`."""

    def __init__(
        self,
        app: App,
        rows: Rows,
        *,
        batch: int = BATCH,
        poll_s: float = POLL_S,
        clock: Clock | None = None,
    ) -> None:
        if batch < 1 or poll_s <= 0:
            raise InvalidField("A relay needs a batch of at least 1 row and a polling interval above 0.")
        self.app = app
        self.relayed = 0
        """Rows that were handed over since it was made."""
        self.refused = 0
        self.rows = rows
        """The table; of use by itself while nothing is relayed."""
        self._door = Door(app)
        self._batch = batch
        self._poll_s = poll_s
        self._clock = clock if clock is not None else SystemClock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._passing = asyncio.Lock()  # rows are taken and settled by one at a time
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    # Life.

    async def __aenter__(self) -> Relay:
        await self.app.call(self._start())
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.app.call(self._stop())

    def __enter__(self) -> Relay:
        self.app.call(self._start()).wait()
        return self

    def __exit__(self, *exc: object) -> None:
        self.app.call(self._stop()).wait()

    def nudge(self) -> None:
        """There is a new row: look now. For any thread; costs next to nothing."""
        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(self._news.set)

    def run(self, *, once: bool = False) -> None:
        """Start the app and relay until SIGTERM or Ctrl-C; `once`: until nothing is left to be sent."""
        asyncio.run(self._alone(once))

    def count(self) -> Call[Count]:
        """How many rows wait, and how many were refused and are kept."""
        return self.app.call(self.rows.count())

    def reopen(self) -> Call[int]:
        """Send refused rows once more, after what they lacked was put right."""
        return self.app.call(self._reopen())

    def drain(self) -> Call[int]:
        """Relay what is there now; how many rows were handed over."""
        return self.app.call(self._drain())

    # Inside.

    async def _drain(self) -> int:
        before = self.relayed
        while await self._pass():
            pass
        return self.relayed - before

    async def _alone(self, once: bool) -> None:
        async with AsyncExitStack() as stack:
            end = asyncio.Event()
            if not once:
                for number in (signal.SIGTERM, signal.SIGINT):
                    asyncio.get_running_loop().add_signal_handler(number, end.set)
            if once:  # a server that is away is an error: whoever started this decides what to do
                await stack.enter_async_context(self.app)
                stack.push_async_callback(self.rows.close)
                await self._drain()
            elif await self._opened(stack, end):
                await stack.enter_async_context(self)
                await end.wait()

    async def _opened(self, stack: AsyncExitStack, end: asyncio.Event) -> bool:
        """Start the app; a server that is away is waited for. False: told to stop before."""
        failures = 0
        while not end.is_set():
            try:
                await stack.enter_async_context(self.app)
            except DuetimeError as error:
                if not error.retryable:
                    raise
                if not failures:
                    _logger.warning("The relay waits for the server: %s", error)
                failures += 1
                with suppress(TimeoutError):
                    async with asyncio.timeout(_pause_s(failures)):
                        await end.wait()
            else:
                return True
        return False

    async def _start(self) -> None:
        if self._task is not None:
            raise InvalidField("The relay is already started.", hint="Start it once.")
        self._loop, self._stopping = asyncio.get_running_loop(), False
        self._news, self._passing = asyncio.Event(), asyncio.Lock()
        self._task = self._loop.create_task(self._work(), name="duetime-relay")

    async def _stop(self) -> None:
        """Finish the rows that are under way; leave the others for the next one."""
        task, self._task = self._task, None
        if task is None:
            return
        self._stopping = True
        self._news.set()
        await task
        self._loop = None
        await self.rows.close()

    async def _reopen(self) -> int:
        count = await self.rows.reopen()
        self._news.set()
        return count

    async def _work(self) -> None:
        failures, told = 0, ""
        await self._say_refused()
        while not self._stopping:
            self._news.clear()
            try:
                more = await self._pass()
            except Exception as error:
                failures += 1
                if (words := f"{type(error).__name__}: {error}") != told:  # not the same every time
                    _logger.warning("The relay waits: %s", words)
                told = words
                await self._wait(_pause_s(failures), nudged=False)
                continue
            if failures:
                _logger.info("The relay continues.")
            failures, told = 0, ""
            if not more:
                await self._wait(self._poll_s)

    async def _wait(self, time_s: float, nudged: bool = True) -> None:
        """Until it is told of a row, or told to stop, or for so long."""
        try:
            async with asyncio.timeout(time_s):
                await self._news.wait()
                while not nudged and not self._stopping:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pass

    async def _say_refused(self) -> None:
        try:
            refused = (await self.rows.count()).refused
        except Exception:
            return  # the first pass says it
        if refused:
            _logger.warning("%d outbox rows were refused earlier; they are kept with the reason.", refused)

    async def _pass(self) -> bool:
        """Take some rows, send them, write down what became of them; whether there may be more to do now."""
        async with self._passing:
            return await self._pass_alone()

    async def _pass_alone(self) -> bool:
        rows = await self.rows.take(self._batch, self._clock.now_ms())
        try:
            if not rows:
                await self.rows.let_go()
                return False
            settled = self._judge(rows, await self._door.send(rows))
            await self.rows.settle(settled)
        except BaseException:
            await self.rows.let_go()
            raise
        self.relayed += len(settled.done)
        self.refused += len(settled.refused)
        return bool(settled.done or settled.refused)

    def _judge(self, rows: Sequence[Row], said: Sequence[Said]) -> Settled:
        settled = Settled([], [], [])
        now_ms = self._clock.now_ms()
        for row, error in zip(rows, said, strict=True):
            if error is None:
                settled.done.append(row.id)
            elif error.retryable:
                settled.later.append((row.id, now_ms + _wait_ms(error)))
            else:
                reason = f"{error.code}: {error.message}"[:ERROR_CHARS_MAX]
                _logger.error("Row %d of the outbox is refused and kept: %s", row.id, reason)
                settled.refused.append((row.id, reason))
        return settled


def _pause_s(failures: int) -> float:
    """How long to wait after so many failures in a row."""
    return min(PAUSE_S * (1 << min(failures, 10)), PAUSE_S_MAX)


def _wait_ms(error: DuetimeError) -> int:
    """As long as was asked for, within reason."""
    wait: Any = error.details.get("retryAfterMs")
    return min(max(int(wait), 100), 60_000) if isinstance(wait, int | float) else 1_000
