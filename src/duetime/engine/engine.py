"""The engine: starts, stops, drains; owns every task. Requests in, answers out; the shell in between.

Everything here runs in one event loop's thread. A fault after a write stops the engine (fail-stop): every
caller gets the same error, nothing half-applied is served, and a new start recovers from the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Mapping
from itertools import count

from duetime.clock import Clock
from duetime.engine.admission.commands import Commands
from duetime.engine.admission.guard import Guard
from duetime.engine.admission.submissions import Submissions
from duetime.engine.dispatcher import Dispatcher
from duetime.engine.durability.checkpointer import Checkpointer
from duetime.engine.durability.recovery import recover_into
from duetime.engine.durability.syncer import Syncer
from duetime.engine.options import EngineOptions, settings_commands
from duetime.engine.phase import Phase, not_running
from duetime.engine.predictions.predictor import Predictor
from duetime.engine.reads.progress import Progresses
from duetime.engine.reads.reader import Reader
from duetime.engine.schedules.planner import Planner
from duetime.engine.shell.inbox import Counted, Inbox
from duetime.engine.shell.pump import Pump
from duetime.engine.shell.shell import Acts, Shell
from duetime.engine.timing.alarm import make_alarm
from duetime.engine.timing.pulse import Pulse
from duetime.engine.timing.window import Window
from duetime.engine.waiters import Observer, Waiters
from duetime.errors import Closed, DuetimeError, Fatal, NoSuchIntent
from duetime.kernel.kernel import Kernel
from duetime.limits import CLOSE_FLUSH_MS_MAX, DISK_FULL_RETRY_S
from duetime.log.log import Log, Position
from duetime.protocol.command import Advance, Drain
from duetime.protocol.outcome import Settlement
from duetime.protocol.terms import AckLevel
from duetime.protocol.view import Progress, View, view_of
from duetime.store.store import ReadStore, Store

_logger = logging.getLogger("duetime")


class Engine:
    """One kernel, its log, its store, and the channels out.

    Its parts: `reads` (views of the state), `submissions` (new intents), `commands` (everything else that
    callers ask for), `schedules`, `predictor`.
    """

    def __init__(
        self,
        log: Log,
        store: Store,
        clock: Clock,
        dispatcher: Dispatcher,
        options: EngineOptions | None = None,
    ) -> None:
        self.options = options = options if options is not None else EngineOptions()
        self.clock = clock
        self.now_ms = clock.now_ms
        self.meter = dispatcher.meter
        self.wakeups = 0
        self.on_failure: Callable[[Exception], None] = lambda error: None
        self._log = log
        self._store = store
        self._dispatcher = dispatcher
        self._phase = phase = Phase()
        self._kernel = kernel = Kernel(store)
        self._inbox = Inbox(self._wake)
        self._waiters = Waiters()
        self._pump = Pump(log, kernel, clock, 0, count(secrets.randbits(62)).__next__)
        self._pump.watched = self._waiters.__bool__
        self._shell = Shell(self._pump, self._inbox, clock)
        self._syncer = Syncer(log, self._synced, self._fail, self.meter)
        self._checkpointer = Checkpointer(
            self._pump,
            log,
            store,
            self._fail,
            every_ms=options.checkpoint_ms,
            changes_max=options.checkpoint_changes,
            meter=self.meter,
        )
        self._alarm = make_alarm(clock, self._ring)
        self._window = Window(kernel.state.timers, store, clock, options.horizon_ms, self._set_alarm)
        self._pulse = Pulse(self._pump, clock)
        self._guard = guard = Guard(log, store, kernel.state, options)
        self._progress = Progresses(store)
        self.predictor = predictor = Predictor(clock, store)
        self.reads = Reader(kernel, phase, clock, self._progress, predictor.durations)
        self.commands = commands = Commands(kernel.state, phase, clock, self._inbox, guard, predictor)
        self.submissions = Submissions(
            kernel.state, phase, clock, commands, self._inbox, guard, self._checkpointer, predictor
        )
        self.schedules = Planner(kernel.state, phase, clock, commands)
        # Called for every request, so without a call in between.
        self.submit = self.submissions.submit
        self.submit_one = self.submissions.submit_one
        self.request = commands.request
        self.ask = commands.ask
        self._busy = False
        self._wake_up: asyncio.Future[None] | None = None
        self._pump_task: asyncio.Task[None] | None = None
        self._close_task: asyncio.Task[None] | None = None
        self._quiet: list[asyncio.Future[None]] = []
        self._sync_within_s = _sync_within_s(options)

    # Lifecycle.

    async def start(self) -> None:
        """Recover, begin a new epoch, and hand out what is due."""
        assert not self._phase.started, "an engine is started once"
        loop, state = asyncio.get_running_loop(), self._kernel.state
        try:
            began_s = loop.time()
            await self._log.open()
            self._pump.position = await recover_into(self._kernel, self._log, self._store)
            if self.meter is not None:
                self.meter.begin(state, self._store, self.clock, loop.time() - began_s)
            self._checkpointer.start()
            self._syncer.start()
            self._dispatcher.open(self.settle)
            await self._window.reach()
            self.submissions.start()
            self._phase.start()
            self._carry_out(await self._shell.begin(settings_commands(state, self.options)))
            self._window.extend()
            self.predictor.start(state)
        except BaseException:
            await self._let_go()
            raise
        self._pump_task = loop.create_task(self._run())

    async def drain(self, within_ms: int) -> bool:
        """Hand out nothing more, and wait until nothing runs; False if time ran out first."""
        if not self._phase.closing and self._phase.failure is None:
            self.request(Drain(), AckLevel.ASYNC, lambda answer: None)
        self._phase.drain()
        try:
            async with asyncio.timeout(within_ms / 1000):
                await self.quiet()
        except TimeoutError:
            return False
        return True

    async def quiet(self) -> None:
        """Wait until nothing is in the inbox and nothing runs."""
        while self._phase.failure is None and self._at_work():
            self._quiet.append(future := asyncio.get_running_loop().create_future())
            await future

    def _at_work(self) -> bool:
        return bool(self._busy or len(self._inbox) or self._dispatcher.running() or self._shell.waits())

    async def close(self, drain_ms: int | None = None) -> None:
        """Drain, write a checkpoint, release everything. Deliveries that did not end in time are handed back.

        Once begun it runs to its end, also if the caller is cancelled; a second call waits for the first.
        """
        if self._close_task is None:
            if not self._phase.started:
                return
            self._close_task = asyncio.get_running_loop().create_task(self._close(drain_ms))
        await asyncio.shield(self._close_task)

    async def _close(self, drain_ms: int | None) -> None:
        self.predictor.release()
        await self.drain(self.options.drain_ms if drain_ms is None else drain_ms)
        self._phase.stop()
        self._alarm.set(None)
        await self._dispatcher.close()
        if self._phase.failure is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_FLUSH_MS_MAX / 1000):
                    await self._flush_outcomes()
            await self._checkpointer.now()
        await self._let_go()

    async def _flush_outcomes(self) -> None:
        """Write the outcomes that came in while closing, so that their deliveries are not repeated."""
        while len(self._inbox) and self._phase.failure is None:
            self._wake()
            await asyncio.shield(self._turn_done())

    def _turn_done(self) -> asyncio.Future[None]:
        future = asyncio.get_running_loop().create_future()
        self._quiet.append(future)
        return future

    async def _let_go(self) -> None:
        self._phase.stop()
        if self._pump_task is not None:
            self._pump_task.cancel()
            await asyncio.gather(self._pump_task, return_exceptions=True)
        await self.predictor.close()
        self._window.close()
        self._pulse.close()
        self._alarm.close()
        await self._syncer.close()
        await self._checkpointer.close()
        try:
            if self._phase.failure is None:
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
        if self._phase.failure is not None:
            return
        failure = error if isinstance(error, DuetimeError) else Fatal(f"The engine failed: {error!r}.")
        self._phase.fail(failure)
        _logger.critical("The engine stopped itself: %s", failure, exc_info=error)
        self._checkpointer.stop()  # the kernel may be half applied: it is not written down
        self._window.close()
        self.predictor.release()
        self._carry_out(self._shell.abandon(failure))
        self._waiters.fail(failure)
        self._notify_quiet()
        self._wake()
        self.on_failure(failure)

    # The loop: append, apply, act.

    def _wake(self) -> None:
        if self._wake_up is not None and not self._wake_up.done():
            self._wake_up.set_result(None)
            self.wakeups += 1

    async def _run(self) -> None:
        try:
            while self._phase.failure is None:
                if not len(self._inbox):
                    self._busy = False
                    self._notify_quiet()
                    self._wake_up = asyncio.get_running_loop().create_future()
                    await self._wake_up
                    self._wake_up = None
                    continue
                self._busy = True
                await self._step()
                await asyncio.sleep(0)  # tidy: let handlers and callers have their turn
        except asyncio.CancelledError:
            if not self._phase.closing:
                self._fail(Fatal("The engine's task was cancelled from outside."))
            raise
        except Exception as error:
            self._fail(error)

    async def _step(self) -> None:
        self._pulse.deaf(await self._window.reach())
        acts = await self._shell.step()
        self._carry_out(acts)
        if acts.failure is not None:
            raise acts.failure
        if acts.full:
            await asyncio.sleep(DISK_FULL_RETRY_S)

    def _synced(self, position: Position) -> None:
        """Everything up to here is on stable storage."""
        self._carry_out(self._shell.synced(position))
        self._notify_quiet()

    def _carry_out(self, acts: Acts) -> None:
        """Execute the actions that the shell returned."""
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
        if turn.voided:
            self._dispatcher.void(turn.voided)
        self._checkpointer.changed()
        if acts.changes:
            self._waiters.tell(acts.changes, self._view)
        self._set_alarm()
        self._window.plan()
        self._pulse.plan()
        self.schedules.rewind(turn)
        self._guard.after()
        if self.meter is not None:
            self.meter.turn(turn)

    def _ring(self) -> None:
        """The alarm rang: time must advance."""
        if not self._phase.closing and self._phase.failure is None:
            self.schedules.look()
        self._inbox.time()

    def _set_alarm(self) -> None:
        self._alarm.set(self._kernel.next_ms())

    def _notify_quiet(self) -> None:
        waiting, self._quiet = self._quiet, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    # Calls from outside.

    def settle(self, settlements: list[Settlement], counted: Counted | None = None) -> None:
        """Hand in outcomes of deliveries: of channels, and of workers. `counted` is called once: with whether
        each counted, or with an error. After `NoSpace` the outcomes are kept, and written later."""
        if self._phase.failure is not None:
            if counted is not None:
                counted(self._phase.failure)
            return
        if counted is not None and not self._phase.started:
            counted(not_running())
            return
        if self.meter is not None:
            self.meter.settled(settlements)
        self.predictor.durations.settled(settlements)
        self._inbox.settle(settlements, counted)

    async def wait(self, id: str) -> View:
        """Wait until the intent has ended; returns its view."""
        view = self.reads.get(id)
        if view is None:
            raise NoSuchIntent(f"There is no intent with the id {id!r}.")
        return view if view.final else await self._waiters.wait(id)

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` with every transition from now on; returns a function that stops it."""
        self._waiters.observers.append(observer)
        return lambda: self._waiters.observers.remove(observer)

    async def advance(self) -> None:
        """Write that time has passed, and wait until everything that follows at once is done."""
        self.schedules.look()
        await self.ask(Advance(), AckLevel.ASYNC)

    def report(self, consumer: str, words: Mapping[tuple[str, int], Progress]) -> int:
        """Progress reports of running functions; gives how many were valid."""
        self._phase.check()
        return self._progress.put(self._kernel.state, consumer, words)

    def stalled_lately(self) -> bool:
        """Whether the event loop stood still just now: connections may have broken for that reason alone."""
        return self._pulse.stalled_lately()

    async def checkpoint(self) -> None:
        """Bring the store up to the log now."""
        await self._checkpointer.now()

    @property
    def position(self) -> Position:
        """The position on the log after the newest record."""
        return self._pump.position

    @property
    def store(self) -> ReadStore:
        """The store, for readers. Raises the reason if the engine is not running."""
        self._phase.check()
        return self._store

    def _view(self, id: str) -> View:
        intent = self._kernel.state.store.get(id)
        assert intent is not None, "it changed just now"
        return view_of(intent)


def _sync_within_s(options: EngineOptions) -> dict[AckLevel, float]:
    """How soon a batch must be synced; 0: at once."""
    return {
        AckLevel.ASYNC: options.flush_ms / 1000,
        AckLevel.BATCH_DEFERRED: options.batch_deferred_ms / 1000,
        AckLevel.DURABLE: 0.0,
        AckLevel.REPLICATED: 0.0,
    }
