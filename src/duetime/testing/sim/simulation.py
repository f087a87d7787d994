"""One seed of the simulator: its engine, log, store, clock, callers and workers, in two acts.

In the first act everything goes wrong and every law is checked at every step; in the second nothing goes
wrong any more, and every submitted intent must end. One thread, no event loop, one `Random`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from hashlib import sha256

from duetime.engine.shell.pump import Turn
from duetime.errors import DuetimeError
from duetime.kernel import invariants
from duetime.kernel.queues.entity_types import type_of
from duetime.limits import TIER_PERMITS
from duetime.log.frame import Frame
from duetime.log.log import Position
from duetime.protocol import record as codec
from duetime.protocol.command import (
    Command,
    Configure,
    Demand,
    Drain,
    Resize,
    Resume,
    Settings,
    Settle,
    Start,
)
from duetime.protocol.effect import Deliver, Effect
from duetime.protocol.reply import Refusal
from duetime.protocol.terms import AckLevel
from duetime.testing.disk import PowerLost
from duetime.testing.laws.checkers import IntentLives
from duetime.testing.sim.engine_run import EngineRun, run_now
from duetime.testing.sim.faults import Crash, Dice, Fault, FaultyLog, FileMedium, Ledger, Medium, MemoryMedium
from duetime.testing.sim.replica import Replica, check_same, compare, plain
from duetime.testing.sim.report import SimulationReport
from duetime.testing.sim.simulated import (
    BEGIN_MS,
    Passing,
    SimulatedClock,
    end_groups,
    end_schedules,
    offer_ticks,
)
from duetime.testing.sim.stores import DurableMemoryStore, DurableSqliteStore, DurableStore
from duetime.testing.sim.told import Sent, Told
from duetime.testing.sim.workers import NAMES, Workers
from duetime.testing.sim.workload import Workload, stuck

# Walking all intents is expensive; every few steps is often enough.
_CHECK_EVERY = 12
_SHOWN = 40


class Simulation:
    """Everything of one seed."""

    def __init__(self, seed: int, tell: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.dice = Dice(seed)
        self.random = self.dice.random
        self.clock = SimulatedClock()
        self.passing = Passing(self.clock, self.dice)
        self.ledger = Ledger()
        self.medium: Medium = FileMedium() if self.random.random() < 0.2 else MemoryMedium()
        on_disk = self.random.random() < 0.1
        self.storage: DurableStore = DurableSqliteStore() if on_disk else DurableMemoryStore()
        self.replica = Replica()
        self.history = IntentLives()
        self.told = Told(self.ledger)
        self.workers = Workers(self.dice)
        self.workload = Workload(self.random)
        self.engine: EngineRun | None = None
        self.zombie: EngineRun | None = None
        self.step = 0
        self.starts = 0
        self.shown: deque[str] = deque(maxlen=_SHOWN)
        self._tell = tell
        self._trace = sha256()
        self._known = 0
        """Frames seen before: after power loss the history is rebuilt from them."""
        self._first = self.workload.first()
        self._commands: dict[str, int] = {}
        self._outcomes: dict[str, int] = {}
        self._refusals: dict[str, int] = {}

    def play(self, steps: int) -> None:
        for self.step in range(1, steps + 1):
            self.workers.step = self.step
            self._guarded(self._step)
            if self.engine is not None:
                if self.step % _CHECK_EVERY:
                    invariants.check_quick(self.engine.state)
                else:
                    invariants.check(self.engine.state)
                    self.history.leaps.check_kept(self.history.seen, self.engine.store.get)
        self.dice.calm()
        self._finish()

    def close(self) -> None:
        """Release what is on the host's disk."""
        if self.engine is not None:
            self.engine.abandon_checkpoint()
        self.storage.close()

    def note(self, text: str) -> None:
        line = f"{self.step:>4} {self.clock.ms - BEGIN_MS:>+9} ms  {text}"
        self.shown.append(line)
        self._trace.update(text.encode())
        if self._tell is not None:
            self._tell(line)

    # The first act: faults.

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do something that may end this run."""
        try:
            work()
        except Crash:
            self._crash("crash", power=self.dice.strikes(Fault.POWER_LOSS))
        except PowerLost:
            self._crash("the power went off", power=True)
        except DuetimeError as error:
            broken = self.engine.pump.broken if self.engine is not None else None
            if self.engine is None or (broken is not None and not isinstance(broken, DuetimeError)):
                raise  # recovery or the kernel failed: no fault explains that
            self._crash(f"stopped by {type(error).__name__}", power=self.dice.strikes(Fault.POWER_LOSS))

    def _step(self) -> None:
        dice, random = self.dice, self.random
        if self.engine is None:
            self._start()
            return
        engine = self.engine
        if engine.state.draining and random.random() < 0.2:
            self._crash("stopped", power=False)
            return
        if random.random() < 0.5:
            self._pass_time(engine)
        offer_ticks(engine, self.told, self.clock.ms, random)
        roll = random.random()
        if roll < 0.35:
            for _ in range(random.randint(1, 3)):
                command, ack = self.workload.next(self.clock.ms, self.history)
                engine.offer(Sent(self.told, command, ack))
        elif roll < 0.55:
            engine.inbox.settle(self.workers.outcomes(self.clock.ms))
        elif roll < 0.65:
            lanes = [name for name in self.workload.lanes if self._pulled(engine, name)]
            word = self.workers.words(lanes)
            if word is not None:
                engine.offer(Sent(self.told, word, AckLevel.ASYNC))
        elif roll < 0.75:
            engine.sync()
        elif roll < 0.9:
            engine.checkpoint_step()
        elif roll < 0.902:
            engine.offer(Sent(self.told, Drain(), AckLevel.ASYNC))
        elif roll < 0.94:
            engine.state.timers.extend(self.clock.ms + 300_000, random.choice((3, 1_000)))
        if engine.checkpointing and dice.strikes(Fault.CHECKPOINT_ABANDONED):
            engine.abandon_checkpoint()
        if len(engine.inbox) and random.random() < 0.8:
            self.medium.fuse(dice)
            try:
                engine.turn()
            finally:
                self.medium.unfuse()
        if engine.checkpointing and dice.strikes(Fault.CRASH_IN_CHECKPOINT):
            raise Crash
        if dice.strikes(Fault.CRASH):
            raise Crash
        if self.zombie is not None and dice.strikes(Fault.STALE_WRITER):
            self._write_stale(self.zombie, must_fail=True)

    def _pulled(self, engine: EngineRun, lane: str) -> bool:
        return lane.partition(":")[0] not in engine.state.settings.pushed or self.random.random() < 0.02

    def _pass_time(self, engine: EngineRun) -> None:
        next_ms = engine.pump.kernel.next_ms()
        told = self.passing.time(engine, next_ms)
        if told:
            self.note(told)
        if next_ms is not None and next_ms <= self.clock.ms and self.random.random() < 0.9:
            engine.inbox.time()

    # Starts and crashes.

    def _start(self) -> None:
        """Recover until it succeeds, then write the first frame of a new epoch."""
        self.starts += 1
        log = FaultyLog(self.medium.open(), self.dice, self.ledger)
        engine = EngineRun(log, self.storage.open(), self.clock, self._nonce, self._act, self._turned)
        self._reconcile(engine)
        if self.dice.strikes(Fault.CRASH_IN_RECOVERY):
            self.engine = engine
            raise Crash
        if self.zombie is not None and self.dice.strikes(Fault.STALE_WRITER):
            # No successor has written yet: if the old process writes now, the new one must recover again.
            self._write_stale(self.zombie, must_fail=False)
        self.engine = engine
        commands, self._first = self._first, []
        engine.begin(commands)
        self.passing.begin(engine)

    def _nonce(self) -> int:
        return self.random.getrandbits(63)

    def _reconcile(self, engine: EngineRun) -> None:
        """After recovery: the log has what it must have, and the state is what the log leads to."""

        async def read() -> list[tuple[Position, Frame]]:
            return [found async for found in engine.log.read(start)]

        start, tail = run_now(engine.log.start()), run_now(engine.log.tail())
        lost = self.ledger.reconcile(run_now(read()), start, tail)
        if lost:
            self.replica, self.history = Replica(), IntentLives()
            self._known = len(self.ledger.frames)
        self._catch_up(None)
        check_same(engine.state, self.replica.kernel.state)
        invariants.check(engine.state)
        self.told.recovered(engine.store, self.history)
        self.note(f"recovered {self.replica.kernel.state.records} records, the log ends at {tail}")

    def _crash(self, reason: str, *, power: bool) -> None:
        self.note(f"{reason}{', power lost' if power else ''}")
        engine, self.engine = self.engine, None
        if engine is not None and engine.checkpointing:
            engine.abandon_checkpoint()
        if power:
            if not self.medium.shared:
                self.dice.note(Fault.TORN_TAIL)
            self.medium.lose_power(self.dice, self.ledger.synced)
            self.zombie = None
        else:
            self.medium.kill()
            # The process may not be dead, only slow: then it wakes up after its successor has started.
            keep = engine is not None and engine.pump.broken is None and self.medium.shared
            self.zombie = engine if keep and isinstance(self.storage, DurableMemoryStore) else None
        self.workers.crashed()
        tail = self._tail_left()
        self.told.crashed(tail, power)

    def _tail_left(self) -> Position:
        """Where the log ends now, as a new reader sees it."""
        log = self.medium.open()
        run_now(log.open())
        tail = run_now(log.tail())
        self.medium.kill()
        return tail

    def _write_stale(self, zombie: EngineRun, *, must_fail: bool) -> None:
        command, ack = self.workload.next(self.clock.ms, self.history)
        zombie.offer(Sent(self.told, command, ack))
        tail = self.ledger.tail
        try:
            zombie.turn()
        except (DuetimeError, Crash):
            self.zombie = None
        assert not must_fail or self.ledger.tail == tail, "two writers wrote"

    # Observation.

    def _turned(self, turn: Turn) -> None:
        """A turn was made: the replica must get the same result."""
        self._catch_up(turn)
        if self.engine is not None and not isinstance(turn.batch.commands[0], Start):
            self.passing.check(self.engine)

    def _catch_up(self, turn: Turn | None) -> None:
        """Let the replica and the history see the new frames of the log."""
        ledger, replica, history = self.ledger, self.replica, self.history
        get = replica.kernel.state.store.get
        frames = ledger.frames[replica.frames :]
        if turn is not None:
            assert len(frames) == 1 and turn.position == ledger.tail, "a turn is one frame at the log's end"
        for position, frame in frames:
            records = replica.records(frame)
            applied = []
            for record in records:
                each = replica.kernel.apply(record)
                history.observe(record, each, get)
                applied.append(each)
            replica.frames += 1
            if replica.frames <= self._known:
                continue
            if turn is not None:
                assert turn.at_ms == frame.at_ms
                compare(turn, applied, position)
            for record, each in zip(records, applied, strict=True):
                self._count(record.command, each.answer)
            self._trace.update(frame.body)
            self._trace.update(codec.encode([(each.effects, each.changes) for each in applied]))
            self._trace.update(b"".join(plain(each.answer) for each in applied))
            names = " ".join(_short(record.command) for record in records)
            moves = " ".join(f"{c.id}:{c.new.name}" for each in applied for c in each.changes)
            self.note(f"@{position} {names}" + (f" => {moves}" if moves else ""))
        self._known = 0

    def _count(self, command: Command, answer: object) -> None:
        name = type(command).__name__
        self._commands[name] = self._commands.get(name, 0) + 1
        if isinstance(command, Settle):
            for settlement in command.settlements:
                kind = type(settlement.outcome).__name__
                self._outcomes[kind] = self._outcomes.get(kind, 0) + 1
        for reply in answer if isinstance(answer, list) else (answer,):
            if isinstance(reply, Refusal):
                name = reply.reason.value
                self._refusals[name] = self._refusals.get(name, 0) + 1

    def _act(self, effect: Effect, position: Position) -> None:
        if isinstance(effect, Deliver):
            self.told.started(effect, position)
            self.workers.deliver(effect)
        else:
            self.workers.abort(effect)

    # The second act: everything must end.

    def _finish(self) -> None:
        engine = self._calm_engine()
        commands: list[Command] = [Configure(Settings())]
        commands += [Resume(name) for name, lane in engine.state.lanes.items() if lane.paused]
        commands += [Resize(tier, permits) for tier, permits in enumerate(TIER_PERMITS)]
        for command in commands:
            engine.offer(Sent(self.told, command, AckLevel.ASYNC))
        end_schedules(engine, self.told, self.clock.ms)
        end_groups(engine, self.told, self.history.groups.unfilled())
        rounds = 100 + 12 * engine.state.live()
        while engine.state.live() or len(engine.inbox):
            rounds -= 1
            assert rounds > 0, f"these did not end: {[stuck(seen) for seen in self.history.live()]}"
            self._round(engine)
        invariants.check(engine.state)
        assert not self.history.live(), "nothing lives any more, by the history too"
        # Once more from the log: the final state survives.
        engine.checkpoint_step()
        while engine.checkpointing:
            engine.checkpoint_step()
        self._crash("the end", power=False)
        self._start()

    def _calm_engine(self) -> EngineRun:
        """A run without work left over from before, that will not crash."""
        while True:
            self.zombie = None
            if self.engine is None:
                self._guarded(self._start)
                continue
            self.engine.abandon_checkpoint()
            while len(self.engine.inbox):
                self.engine.turn()
            if not self.engine.state.draining:
                return self.engine
            self._crash("stopped", power=False)

    def _round(self, engine: EngineRun) -> None:
        engine.turn()
        engine.sync()
        invariants.check_quick(engine.state)
        engine.inbox.settle(self.workers.answer_all())
        for name, lane in engine.state.lanes.items():
            if not lane.pushed and lane.pending and not lane.turns:
                wanted = type_of(name) if lane.serial and self.random.random() < 0.5 else name
                engine.offer(Sent(self.told, Demand(NAMES[0], wanted, 50), AckLevel.ASYNC))
        if not len(engine.inbox):
            next_ms = engine.pump.kernel.next_ms()
            assert next_ms is not None or not engine.state.live(), (
                f"nothing will ever happen to {[stuck(seen) for seen in self.history.live()]}"
            )
            if next_ms is not None:
                self.clock.move(max(0, next_ms - self.clock.ms))
                engine.inbox.time()

    def report(self) -> SimulationReport:
        moves = {
            f"{old.name} -> {new.name}": count
            for (old, new), count in self.history.moves.items()
            if old is not None
        }
        return SimulationReport(
            seeds=1, steps=self.step, records=self.replica.kernel.state.records, starts=self.starts,
            intents=self.history.number, simulated_ms=self.clock.passed_ms, commands=self._commands,
            transitions=moves, outcomes=self._outcomes, faults=self.dice.counts, refusals=self._refusals,
            digests={self.seed: self._trace.hexdigest()},
        )  # fmt: skip


def _short(command: Command) -> str:
    name = type(command).__name__
    if isinstance(command, Settle):
        outcomes = [f"{s.id}#{s.delivery} {type(s.outcome).__name__}" for s in command.settlements]
        return f"{name}({', '.join(outcomes)})"
    id = getattr(command, "id", "") or getattr(command, "lane", "") or getattr(command, "consumer", "")
    return f"{name}({id})" if id else name
