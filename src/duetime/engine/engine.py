"""The engine: starts, stops, drains; owns every task. Requests in, answers out; the shell in between.

Everything here runs in one event loop's thread. A fault after a write stops the engine (fail-stop): every
caller gets the same error, nothing half-applied is served, and a new start recovers from the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable
from itertools import count
from typing import Any

from duetime import errors
from duetime.clock import Alarm, Clock
from duetime.engine.alarm import make_alarm
from duetime.engine.catalog import Catalog
from duetime.engine.checkpointer import Checkpointer
from duetime.engine.dispatcher import Dispatcher
from duetime.engine.guard import Guard
from duetime.engine.inbox import Counted, Inbox, Request, command_bytes
from duetime.engine.options import Options
from duetime.engine.parts import resolver, settings_commands
from duetime.engine.planner import Planner
from duetime.engine.predictions.predictor import Expecting
from duetime.engine.progress import Progresses
from duetime.engine.pulse import Pulse
from duetime.engine.pump import Pump
from duetime.engine.recovery import recover
from duetime.engine.shell import Acts, Shell
from duetime.engine.syncer import Syncer
from duetime.engine.waiters import Observer, Waiters
from duetime.engine.window import Window
from duetime.errors import Closed, DuetimeError, Fatal
from duetime.kernel import query
from duetime.kernel.kernel import Answer, Kernel
from duetime.kernel.state import State
from duetime.log.log import Log, Position
from duetime.protocol import bounds
from duetime.protocol.command import Command, Drain, SetLane
from duetime.protocol.intent import Intent
from duetime.protocol.outcome import Settlement
from duetime.protocol.reply import Existing, Refusal
from duetime.protocol.terms import AckLevel
from duetime.protocol.view import View
from duetime.refusals import error_of
from duetime.store.store import ReadStore, Store

_logger = logging.getLogger("duetime")

# How long a closing engine tries to write outcomes to a full disk. Their deliveries are repeated later.
FLUSH_MS_MAX = 5_000
# How soon to check a full disk again.
_FULL_RETRY_S = 0.5


class Engine(Planner):
    """One kernel, its log, its store, and the channels out."""

    def __init__(
        self, log: Log, store: Store, clock: Clock, dispatcher: Dispatcher, options: Options | None = None
    ) -> None:
        super().__init__()
        self.options = options if options is not None else Options()
        self.clock = clock
        self._log = log
        self._store = store
        self._dispatcher = dispatcher
        self.meter = dispatcher.meter
        self.wakeups = 0
        self._inbox = Inbox(self._wake)
        self._catalog = Catalog()
        self.expecting = Expecting(clock)
        self._waiters = Waiters()
        self.progress = Progresses(store)
        self._failure: Exception | None = None
        self._started = self._closing = self._busy = False
        self._wake_up: asyncio.Future[None] | None = None
        self._pump_task: asyncio.Task[None] | None = None
        self._close_task: asyncio.Task[None] | None = None
        self._quiet: list[asyncio.Future[None]] = []
        self._sync_within_s = {
            AckLevel.ASYNC: self.options.flush_ms / 1000,
            AckLevel.BATCH_DEFERRED: self.options.batch_deferred_ms / 1000,
            AckLevel.DURABLE: 0.0,
            AckLevel.REPLICATED: 0.0,
        }
        self.on_failure: Callable[[Exception], None] = lambda error: None

    # Lifecycle.

    async def start(self) -> None:
        """Recover, begin a new epoch, and hand out what is due."""
        assert not self._started, "an engine is started once"
        self._loop = asyncio.get_running_loop()
        try:
            began_s = self._loop.time()
            await self._log.open()
            kernel, position = await recover(self._log, self._store)
            if self.meter is not None:
                self.meter.begin(kernel.state, self._store, self.clock, self._loop.time() - began_s)
            self.pump = Pump(self._log, kernel, self.clock, position, count(secrets.randbits(62)).__next__)
            self.pump.watched = self._waiters.__bool__
            self.guard = Guard(self._log, self._store, kernel.state, self.options)
            self._shell = Shell(self.pump, self._inbox, self.clock)
            self._syncer = Syncer(self._log, self._synced, self._fail, self.meter)
            self._checkpointer = Checkpointer(
                self.pump,
                self._log,
                self._store,
                self._fail,
                every_ms=self.options.checkpoint_ms,
                changes_max=self.options.checkpoint_changes,
                meter=self.meter,
            )
            self.expecting.durations.begin(self._store, self.clock)
            self._dispatcher.open(self.settle)
            self._alarm: Alarm = make_alarm(self.clock, self._ring)
            self._window = Window(
                kernel.state.timers, self._store, self.clock, self.options.horizon_ms, self._set_alarm
            )
            self.pulse = Pulse(self.pump, self.clock)
            await self._window.reach()
            self._started = True
            self._carry_out(await self._shell.begin(settings_commands(kernel.state, self.options)))
            self._window.extend()
            self.expecting.start(kernel.state, self._store)
        except BaseException:
            self._started = False
            await self._let_go()
            raise
        self._pump_task = self._loop.create_task(self._run())

    async def drain(self, within_ms: int) -> bool:
        """Hand out nothing more, and wait until nothing runs; False if time ran out first."""
        if not self._closing and self._failure is None:
            self.request(Drain(), AckLevel.ASYNC, lambda answer: None)
        self._closing = True
        try:
            async with asyncio.timeout(within_ms / 1000):
                await self.quiet()
        except TimeoutError:
            return False
        return True

    async def quiet(self) -> None:
        """Wait until nothing is in the inbox and nothing runs."""
        while self._failure is None and self._at_work():
            self._quiet.append(future := self._loop.create_future())
            await future

    def _at_work(self) -> bool:
        return bool(self._busy or len(self._inbox) or self._dispatcher.running() or self._shell.waits())

    async def close(self, drain_ms: int | None = None) -> None:
        """Drain, write a checkpoint, release everything. Deliveries that did not end in time are handed back.

        Once begun it runs to its end, also if the caller is cancelled; a second call waits for the first.
        """
        if self._close_task is None:
            if not self._started:
                return
            self._close_task = self._loop.create_task(self._close(drain_ms))
        await asyncio.shield(self._close_task)

    async def _close(self, drain_ms: int | None) -> None:
        self.expecting.release()
        await self.drain(self.options.drain_ms if drain_ms is None else drain_ms)
        self._started = False
        self._alarm.set(None)
        await self._dispatcher.close()
        if self._failure is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_MS_MAX / 1000):
                    await self._flush_outcomes()
            await self._checkpointer.now()
        await self._let_go()

    async def _flush_outcomes(self) -> None:
        """Write the outcomes that came in while closing, so that their deliveries are not repeated."""
        while len(self._inbox) and self._failure is None:
            self._wake()
            await asyncio.shield(self._turn_done())

    def _turn_done(self) -> asyncio.Future[None]:
        future = self._loop.create_future()
        self._quiet.append(future)
        return future

    async def _let_go(self) -> None:
        self._closing = True
        if self._pump_task is not None:
            self._pump_task.cancel()
            await asyncio.gather(self._pump_task, return_exceptions=True)
        for part in ("expecting", "_window", "pulse", "_alarm", "_syncer", "_checkpointer"):
            if hasattr(self, part):  # tidy: a start that failed did not make all parts
                closed = getattr(self, part).close()
                if closed is not None:
                    await closed
        try:
            if self._failure is None:
                await self._log.close()
            else:
                await asyncio.gather(self._log.close(), return_exceptions=True)
        finally:
            self._store.close()
            self._waiters.fail(
                Closed("The app was closed while waiting for an intent; the intent itself continues.")
            )

    def _fail(self, error: Exception) -> None:
        """Stop for good: from now on every caller gets this error."""
        if self._failure is not None:
            return
        self._failure = error if isinstance(error, DuetimeError) else Fatal(f"The engine failed: {error!r}.")
        _logger.critical("The engine stopped itself: %s", self._failure, exc_info=error)
        self._checkpointer.stop()  # the kernel may be half applied: it is not written down
        self._window.close()
        self.expecting.release()
        self._carry_out(self._shell.abandon(self._failure))
        self._waiters.fail(self._failure)
        self._notify_quiet()
        self._wake()
        self.on_failure(self._failure)

    # The loop: append, apply, act.

    def _wake(self) -> None:
        if self._wake_up is not None and not self._wake_up.done():
            self._wake_up.set_result(None)
            self.wakeups += 1

    async def _run(self) -> None:
        try:
            while self._failure is None:
                if not len(self._inbox):
                    self._busy = False
                    self._notify_quiet()
                    self._wake_up = self._loop.create_future()
                    await self._wake_up
                    self._wake_up = None
                    continue
                self._busy = True
                await self._step()
                await asyncio.sleep(0)  # tidy: let handlers and callers have their turn
        except asyncio.CancelledError:
            if not self._closing:
                self._fail(Fatal("The engine's task was cancelled from outside."))
            raise
        except Exception as error:
            self._fail(error)

    async def _step(self) -> None:
        self.pulse.deaf(await self._window.reach())
        acts = await self._shell.step()
        self._carry_out(acts)
        if acts.failure is not None:
            raise acts.failure
        if acts.full:
            await asyncio.sleep(_FULL_RETRY_S)

    def _synced(self, position: Position) -> None:
        """Everything up to here is on stable storage."""
        self._carry_out(self._shell.synced(position))
        self._notify_quiet()

    def _carry_out(self, acts: Acts) -> None:
        """Do what the shell ordered."""
        if acts.effects:
            self._dispatcher.act(acts.effects)
        for request, answer in acts.replies:
            request.reply(answer)
        if acts.sync is not None:
            self._syncer.written(acts.position, self._sync_within_s[acts.sync])
        if acts.known and self.meter is not None:
            self.meter.known(answer for _, answer in acts.known)
        turn = acts.turn
        if turn is None:
            return
        self._checkpointer.changed()
        if acts.changes:
            self._waiters.tell(acts.changes, self._view)
        self._set_alarm()
        self._window.plan()
        self.pulse.plan()
        self.rewind(turn)
        self.guard.after()
        if self.meter is not None:
            self.meter.turn(turn)

    def _ring(self) -> None:
        """The alarm rang: time must advance."""
        if not self._closing and self._failure is None:
            self.look()
        self._inbox.time()

    def _set_alarm(self) -> None:
        self._alarm.set(self.pump.kernel.next_ms())

    def _notify_quiet(self) -> None:
        waiting, self._quiet = self._quiet, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    # Calls from outside.

    def settle(self, settlements: list[Settlement], counted: Counted | None = None) -> None:
        """Hand in outcomes of deliveries: of channels, and of workers. `counted` is called once: with whether
        each counted, or with an error. After `NoSpace` the outcomes are kept, and written later."""
        if self._failure is not None:
            if counted is not None:
                counted(self._failure)
            return
        if counted is not None and not self._started:
            counted(Closed("The engine is not running."))
            return
        if self.meter is not None:
            self.meter.settled(settlements)
        self.expecting.durations.settled(settlements)
        self._inbox.settle(settlements, counted)

    def request(
        self, command: Command, ack: AckLevel, reply: Callable[[Answer | Exception], None], size: int = 128
    ) -> None:
        """Hand in a command; `reply` is called once."""
        if self._failure is not None:
            reply(self._failure)
        elif not self._started or self._closing:
            reply(Closed("The engine is not running."))
        else:
            self._inbox.put(Request(command, ack, reply, size))

    async def ask(self, command: Command, ack: AckLevel = AckLevel.DURABLE) -> Any:
        """Hand in a command and wait for its answer; a refusal is raised."""
        problem = bounds.command(command)
        if problem is not None:
            raise errors.InvalidField(problem)
        self.guard.admit_command(command)
        future: asyncio.Future[Answer] = self._loop.create_future()
        self.request(command, ack, resolver(future), command_bytes(command))
        answer = await future
        if isinstance(answer, Refusal):
            raise error_of(answer)
        if isinstance(command, SetLane):
            self.expecting.look(self.settled_lanes)
        if isinstance(answer, Existing):
            return query.view(answer.intent, self.now_ms())
        return query.view(answer, self.now_ms()) if isinstance(answer, Intent) else answer

    async def wait(self, id: str) -> View:
        """Wait until the intent has ended; returns its view."""
        view = self.get(id)
        if view is None:
            raise errors.NoSuchIntent(f"There is no intent with the id {id!r}.")
        return view if view.final else await self._waiters.wait(id)

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` with every transition from now on; returns a function that stops it."""
        self._waiters.observers.append(observer)
        return lambda: self._waiters.observers.remove(observer)

    async def checkpoint(self) -> None:
        """Bring the store up to the log now."""
        await self._checkpointer.now()

    def now_ms(self) -> int:
        return self.clock.now_ms()

    @property
    def position(self) -> Position:
        """The position on the log after the newest record."""
        return self.pump.position

    @property
    def store(self) -> ReadStore:
        """The store, for readers. Raises the reason if the engine is not running."""
        self._kernel()
        return self._store

    def _kernel(self) -> Kernel:
        if self._failure is not None:
            raise self._failure
        if not self._started:
            raise Closed("The engine is not running.")
        return self.pump.kernel

    def _last_state(self) -> State:
        return self.pump.kernel.state

    def _view(self, id: str) -> View:
        intent = self.pump.kernel.state.store.get(id)
        assert intent is not None, "it changed just now"
        return query.view(intent)
