"""A worker: takes deliveries from servers, runs the App's functions, sends their outcomes.

There are two threads. The main thread has the event loop of the functions; the other one has the connections
(`Link`) and their heartbeats. The threads exchange whole batches. The worker asks for as many deliveries as
it can run. With several queues or servers, more may arrive; a delivery that cannot start within a second is
returned for other workers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections import deque
from collections.abc import Callable

from duetime.client.app.app import App
from duetime.client.execution.reports import Word
from duetime.client.worker.worker_connection import Link
from duetime.client.worker.worker_options import FunctionRunner, WorkerOptions
from duetime.errors import DuetimeError
from duetime.limits import PROGRESS_MS, SURPLUS_S, WORKER_BLOCKED_S, WORKER_LEAVE_S
from duetime.protocol.effect import Abort, Deliver, DeliveryKey
from duetime.protocol.outcome import Done, Returned, Settlement, Snoozed
from duetime.protocol.terms import Entity, type_lane

_BUSY = Snoozed(0, "its worker had no room for it")
_STOPPED = Snoozed(0, "its worker stopped before it began")
_UNFINISHED = Returned("its worker was stopped before it was done")
EXIT_AT_ONCE = 1
_logger = logging.getLogger("duetime.worker")


class Worker:
    """Runs from `run` to `stop`."""

    def __init__(self, app: App, channel: FunctionRunner, options: WorkerOptions) -> None:
        self._app = app
        self._channel = channel
        self._options = options
        self._links = [Link(each, options, self) for each in options.servers]
        self._open: dict[Link, int] = {}
        self._held: dict[DeliveryKey, Link] = {}
        self._orphans: dict[str, int] = {}
        self._late: set[DeliveryKey] = set()
        self._left: set[DeliveryKey] = set()
        self._waiting: deque[tuple[Deliver, float]] = deque()
        self._surplus: asyncio.TimerHandle | None = None
        self._stopping = False
        self._signals = 0
        self._error: Exception | None = None
        self._starting: asyncio.Task[None] | None = None
        self._started = not options.start_app
        self._ready = threading.Event()

    async def run(self) -> None:
        """Work until stopped. Unfinished deliveries are then returned. A running thread cannot be stopped:
        the server returns its delivery when the connection ends with this process."""
        self._loop = asyncio.get_running_loop()
        self._idle = asyncio.Event()
        self._stop = asyncio.Event()
        self._channel.open(self._settle)
        self._app.functions.reports.on_news(self._news)
        thread = threading.Thread(target=self._run_links, name="duetime-links", daemon=True)
        thread.start()
        self._ready.wait()
        if self._signals:
            self._on_links(self._drain_links)
            self._stop_taking()
        await self._stop.wait()
        if self._error is None:
            await self._finish()
        if not self._left:
            self._on_links(self._links_loop.stop)
            thread.join()
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
        await self._app.stop()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Take no more deliveries, finish the running ones, and stop. A second call stops immediately. Can be
        called from any thread and from a signal handler."""
        self._signals += 1
        if self._signals > 1:
            _logger.warning("Stopped immediately; %d deliveries have no outcome.", len(self._held))
            self._app.functions.kill()
            os._exit(EXIT_AT_ONCE)
        if self._ready.is_set():
            self._on_links(self._drain_links)
            self._loop.call_soon_threadsafe(self._stop_taking)

    # In the thread of the connections.

    def _run_links(self) -> None:
        self._links_loop = loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        tasks = [loop.create_task(link.run()) for link in self._links]
        loop.call_soon(self._ready.set)
        try:
            loop.run_forever()
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        finally:
            loop.close()

    def _drain_links(self) -> None:
        for link in self._links:
            link.drain()
        self._links_loop.call_later(self._options.drain_s + WORKER_BLOCKED_S, self._force)

    def _force(self) -> None:
        """The drain time is over. If a function still blocks the other event loop, exit without it. The
        server returns its delivery when the connection ends, so not before the function has ended with this
        process."""
        if not self._loop_answers():
            _logger.warning("A function blocks the event loop; exiting without it. Its delivery is returned.")
            self._app.functions.kill()
            os._exit(0)

    def _loop_answers(self) -> bool:
        answered = threading.Event()
        self._loop.call_soon_threadsafe(answered.set)
        return answered.wait(WORKER_BLOCKED_S)

    async def _leave_links(self) -> None:
        await asyncio.gather(*(link.finish(WORKER_LEAVE_S, stay=bool(self._left)) for link in self._links))

    def opened(self, link: Link, credits_max: int) -> None:
        self._loop.call_soon_threadsafe(self._on_opened, link, credits_max)

    def closed(self, link: Link, number: int) -> None:
        self._loop.call_soon_threadsafe(self._on_closed, link, number)

    def arrived(self, link: Link, deliveries: list[Deliver]) -> None:
        self._loop.call_soon_threadsafe(self._on_arrived, link, deliveries)

    def aborted(self, link: Link, aborts: list[tuple[Abort, str]]) -> None:
        self._loop.call_soon_threadsafe(self._on_aborted, aborts)

    def refused(self, link: Link, error: Exception) -> None:
        self._loop.call_soon_threadsafe(self._on_refused, error)

    def _report_soon(self) -> None:
        """Functions reported progress: collect reports for a while, and send them together."""
        self._links_loop.call_later(PROGRESS_MS / 1000, self._report)

    def _report(self) -> None:
        by_link: dict[Link, dict[DeliveryKey, Word]] = {}
        for place, word in self._app.functions.reports.take().items():
            link = self._held.get(place)
            if link is not None:
                by_link.setdefault(link, {})[place] = word
        for link, words in by_link.items():
            link.report(words)

    # From any thread.

    def _news(self) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            self._links_loop.call_soon_threadsafe(self._report_soon)

    # On the event loop of the functions.

    def _on_links(self, call: Callable[[], object]) -> None:
        self._links_loop.call_soon_threadsafe(call)

    def _on_opened(self, link: Link, credits_max: int) -> None:
        link.credits = dict.fromkeys(self._options.sources, 0)
        self._open[link] = credits_max
        if self._started:
            self._ask()
        elif self._starting is None:
            self._starting = self._loop.create_task(self._start_app())

    async def _start_app(self) -> None:
        """Start the app, so that functions can schedule others. It waits by itself for HTTP of its server."""
        try:
            await self._app.start()
        except DuetimeError as error:
            self._on_refused(error)
            return
        self._started = True
        self._ask()

    def _on_closed(self, link: Link, number: int) -> None:
        """A connection was lost. Its deliveries continue: outcomes may count after a reconnect."""
        self._open.pop(link, None)
        kept = [place for place, by in self._held.items() if by is link]
        self._orphans.update(kept)
        link.holding = number, kept

    def _on_refused(self, error: Exception) -> None:
        self._error = error
        self._stop.set()

    def _on_arrived(self, link: Link, deliveries: list[Deliver]) -> None:
        held, credits = self._held, link.credits
        if self._orphans:
            self._forget_orphans(deliveries)
        for each in deliveries:
            held[each.id, each.delivery] = link
            lane = each.terms.lane
            if lane not in credits:
                target = each.terms.target
                assert type(target) is Entity, "only requested deliveries arrive"
                lane = type_lane(target.kind)
            credits[lane] -= 1
        if self._stopping:
            self._give_back(deliveries, _STOPPED)
            return
        room = max(0, self._options.concurrency - self._channel.running() - len(self._waiting))
        now_s = self._loop.time()
        for each in deliveries[:room]:
            self._channel.deliver(each, now_s)
        if len(deliveries) > room:
            self._waiting.extend((each, now_s) for each in deliveries[room:])
            self._watch_surplus()
        self._channel.flush()

    def _forget_orphans(self, deliveries: list[Deliver]) -> None:
        """An intent was delivered again: the outcome of its earlier delivery is no longer needed."""
        for each in deliveries:
            earlier = self._orphans.pop(each.id, 0)
            if 0 < earlier < each.delivery and self._held.pop((each.id, earlier), None) is not None:
                self._channel.abort(Abort(each.id, earlier, ""))

    def _on_aborted(self, aborts: list[tuple[Abort, str]]) -> None:
        for abort, reason in aborts:
            place = (abort.id, abort.delivery)
            if self._held.pop(place, None) is None:
                continue
            if reason == "cancelled":
                _logger.info("Intent %s, delivery %d, is stopped: cancelled.", *place)
            else:
                _logger.warning("Intent %s, delivery %d, is stopped: its %s has expired.", *place, reason)
                self._late.add(place)
            for entry in self._waiting:
                if (entry[0].id, entry[0].delivery) == place:
                    self._waiting.remove(entry)
                    break
            else:
                self._channel.abort(abort)
        self._go_on()

    def _settle(self, settlements: list[Settlement]) -> None:
        """Take the outcomes of functions."""
        held = self._held
        if self._late:
            self._show_late(settlements)
        if len(self._links) == 1:
            wanted = [each for each in settlements if held.pop((each.id, each.delivery), None) is not None]
            if wanted:
                self._links[0].send(wanted, self._more())
        else:
            self._settle_each(settlements)
        if self._orphans:
            for each in settlements:
                self._orphans.pop(each.id, None)
        self._go_on()

    def _show_late(self, settlements: list[Settlement]) -> None:
        """The outcomes without those of deliveries that were taken back: they would be refused."""
        for each in settlements:
            place = (each.id, each.delivery)
            if place in self._late:
                self._late.discard(place)
                if isinstance(each.outcome, Done):
                    _logger.warning(
                        "The outcome of intent %s, delivery %d, came too late and was not sent.", *place
                    )

    def _settle_each(self, settlements: list[Settlement]) -> None:
        by_link: dict[Link, list[Settlement]] = {}
        for each in settlements:
            link = self._held.pop((each.id, each.delivery), None)
            if link is not None:
                by_link.setdefault(link, []).append(each)
        for link, some in by_link.items():
            link.send(some, {})

    def _go_on(self) -> None:
        """A delivery has ended: start waiting ones, and ask for more."""
        if self._waiting:
            room = self._options.concurrency - self._channel.running()
            while self._waiting and room > 0:
                self._channel.deliver(*self._waiting.popleft())
                room -= 1
            self._channel.flush()
        if self._stopping:
            if not self._held:
                self._idle.set()
        else:
            self._ask()

    # Credits.

    def _ask(self) -> None:
        for link in self._open:
            if more := self._credits_for(link):
                link.send([], more)

    def _more(self) -> dict[str, int]:
        """Credits to send together with outcomes, if there is only one connection."""
        link = self._links[0]
        return self._credits_for(link) if link in self._open else {}

    def _credits_for(self, link: Link) -> dict[str, int]:
        """The number of deliveries that could run now, within the limit of one connection."""
        if self._stopping or not self._started:
            return {}
        held = len(self._held)
        wanted = min(self._options.concurrency - held, (self._open[link] - held) // len(link.credits))
        more: dict[str, int] = {}
        for queue, had in link.credits.items():
            if had < wanted:
                more[queue] = wanted - had
                link.credits[queue] = wanted
        return more

    # Deliveries that cannot start.

    def _watch_surplus(self) -> None:
        if self._surplus is None and self._waiting:
            at_s = self._waiting[0][1] + SURPLUS_S
            self._surplus = self._loop.call_at(at_s, self._look_at_surplus)

    def _look_at_surplus(self) -> None:
        self._surplus = None
        late_s = self._loop.time() - SURPLUS_S
        back: list[Deliver] = []
        while self._waiting and self._waiting[0][1] <= late_s:
            back.append(self._waiting.popleft()[0])
        self._give_back(back, _BUSY)
        self._watch_surplus()

    def _give_back(self, deliveries: list[Deliver], why: Snoozed) -> None:
        by_link: dict[Link, list[Settlement]] = {}
        for each in deliveries:
            link = self._held.pop((each.id, each.delivery), None)
            if link is not None:
                by_link.setdefault(link, []).append(Settlement(each.id, each.delivery, why, waited_ms=-1))
        for link, some in by_link.items():
            link.send(some, {})

    # Stopping.

    def _stop_taking(self) -> None:
        self._stopping = True
        back = [each for each, _ in self._waiting] + self._channel.hand_back()
        self._waiting.clear()
        self._give_back(back, _STOPPED)
        _logger.info(
            "Stopping: %d deliveries are returned, %d are still running.", len(back), len(self._held)
        )
        if not self._held:
            self._idle.set()
        self._stop.set()

    async def _finish(self) -> None:
        try:
            async with asyncio.timeout(self._options.drain_s):
                await self._idle.wait()
        except TimeoutError:
            _logger.warning("%d deliveries did not finish in time and are returned.", len(self._held))
        await self._channel.close()
        self._left = self._channel.left() & self._held.keys()
        left = self._return_held()
        leaving = asyncio.run_coroutine_threadsafe(self._leave_links(), self._links_loop)
        await asyncio.wrap_future(leaving)
        _logger.info("Stopped; %d unfinished deliveries were returned.", left)

    def _return_held(self) -> int:
        """Return all deliveries that have no outcome and do not run. Gives the number without an outcome."""
        by_link: dict[Link, list[Settlement]] = {}
        for (id, delivery), link in self._held.items():
            if (id, delivery) not in self._left:
                by_link.setdefault(link, []).append(Settlement(id, delivery, _UNFINISHED))
        for link, some in by_link.items():
            link.send(some, {})
        return len(self._held)
