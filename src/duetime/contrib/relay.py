"""The relay: sends the rows of an outbox to Duetime, in order, while it runs.

A row is deleted after it was sent. After a crash in between it is sent again, and its idempotency key finds
the first intent. A refused row is kept with the reason and does not block the others. If the server is
unreachable or asks to retry later, the relay retries with back-off.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack

from duetime.client.app.app import App
from duetime.client.app.call import Call
from duetime.clock import Clock, SystemClock
from duetime.contrib.outbox.rows import Count, Row, Rows, Settled
from duetime.contrib.outbox.sink import Said, Sink
from duetime.errors import DuetimeError, InvalidField
from duetime.limits import ERROR_CHARS_MAX, RELAY_BATCH, RELAY_POLL_S, RELAY_RETRY_S, RELAY_RETRY_S_MAX

_logger = logging.getLogger("duetime")


class Relay:
    """Sends the rows of one outbox to one app. Use it inside `with app:`, or call `run()`."""

    def __init__(
        self,
        app: App,
        rows: Rows,
        *,
        batch: int = RELAY_BATCH,
        poll_s: float = RELAY_POLL_S,
        clock: Clock | None = None,
    ) -> None:
        if batch < 1 or poll_s <= 0:
            raise InvalidField("A relay needs a batch of at least 1 row and a polling interval above 0.")
        self.app = app
        self.relayed = 0
        """The number of rows that this relay has sent."""
        self.refused = 0
        self.rows = rows
        """The table. It can be used directly while the relay is stopped."""
        self._sink = Sink(app)
        self._batch = batch
        self._poll_s = poll_s
        self._clock = clock if clock is not None else SystemClock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._passing = asyncio.Lock()  # one pass at a time takes and settles rows
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    # Lifecycle.

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
        """Check for new rows now. Thread-safe and cheap."""
        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(self._news.set)

    def run(self, *, once: bool = False) -> None:
        """Start the app and relay until SIGTERM or Ctrl-C. With `once`, stop when no row is waiting."""
        asyncio.run(self._alone(once))

    def count(self) -> Call[Count]:
        """The number of waiting rows and of refused rows."""
        return self.app.call(self.rows.count())

    def reopen(self) -> Call[int]:
        """Send the refused rows again, after the cause was fixed. Returns their number."""
        return self.app.call(self._reopen())

    def drain(self) -> Call[int]:
        """Send the rows that wait now. Returns the number of rows sent."""
        return self.app.call(self._drain())

    # Internal.

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
            await stack.enter_async_context(self.app)
            if once:  # an unreachable server is an error here: the caller decides what to do
                stack.push_async_callback(self.rows.close)
                await self._drain()
            else:
                await stack.enter_async_context(self)
                await end.wait()

    async def _start(self) -> None:
        if self._task is not None:
            raise InvalidField("The relay is already started.", hint="Start it once.")
        self._loop, self._stopping = asyncio.get_running_loop(), False
        self._news, self._passing = asyncio.Event(), asyncio.Lock()
        self._task = self._loop.create_task(self._work(), name="duetime-relay")

    async def _stop(self) -> None:
        """Finish the current pass; the other rows wait for the next relay."""
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
                if (words := f"{type(error).__name__}: {error}") != told:  # log the same error once
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
        """Wait for `time_s`, or until the relay is stopped or, if `nudged`, nudged."""
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
            return  # the first pass reports the error
        if refused:
            _logger.warning("%d outbox rows were refused earlier; they are kept with the reason.", refused)

    async def _pass(self) -> bool:
        """Take some rows, send them, store the results. Returns whether more rows may be waiting."""
        async with self._passing:
            return await self._pass_alone()

    async def _pass_alone(self) -> bool:
        rows = await self.rows.take(self._batch, self._clock.now_ms())
        try:
            if not rows:
                await self.rows.let_go()
                return False
            settled = self._judge(rows, await self._sink.send(rows))
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
    """The back-off after this number of consecutive failures."""
    return min(RELAY_RETRY_S * (1 << min(failures, 10)), RELAY_RETRY_S_MAX)


def _wait_ms(error: DuetimeError) -> int:
    """The delay that the server asked for, within bounds."""
    wait: object = error.details.get("retryAfterMs")
    return min(max(int(wait), 100), 60_000) if isinstance(wait, int | float) else 1_000
