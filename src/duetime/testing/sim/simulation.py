"""One seed of the simulator: its engine, log, store, clock, callers and workers, in two acts.

In the first act everything goes wrong and every law is checked at every step; in the second nothing goes
wrong any more, and every submitted intent must end. One thread, no event loop, one `Random`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from hashlib import sha256

from duetime.engine.pump import Turn
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
from duetime.testing.laws.checkers import History
from duetime.testing.sim.engine_run import Life, run_now
from duetime.testing.sim.faults import Crash, Dice, Fault, FaultyLog, FileMedium, Ledger, Medium, MemoryMedium
from duetime.testing.sim.replica import Twin, check_same, compare, plain
from duetime.testing.sim.report import Report
from duetime.testing.sim.simulated import (
    BEGIN_MS,
    Passing,
    SimulatedClock,
    end_groups,
    end_schedules,
    offer_ticks,
)
from duetime.testing.sim.stores import MemoryShelf, Shelf, SqliteShelf
from duetime.testing.sim.told import Outside, Sent
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
        self.shelf: Shelf = SqliteShelf() if self.random.random() < 0.1 else MemoryShelf()
        self.twin = Twin()
        self.history = History()
        self.outside = Outside(self.ledger)
        self.workers = Workers(self.dice)
        self.workload = Workload(self.random)
        self.life: Life | None = None
        self.zombie: Life | None = None
        self.step = 0
        self.lives = 0
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
            if self.life is not None:
                if self.step % _CHECK_EVERY:
                    invariants.check_quick(self.life.state)
                else:
                    invariants.check(self.life.state)
                    self.history.leaps.check_kept(self.history.seen, self.life.store.get)
        self.dice.calm()
        self._finish()

    def close(self) -> None:
        """Release what is on the host's disk."""
        if self.life is not None:
            self.life.abandon_checkpoint()
        self.shelf.close()

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
            broken = self.life.pump.broken if self.life is not None else None
            if self.life is None or (broken is not None and not isinstance(broken, DuetimeError)):
                raise  # recovery or the kernel failed: no fault explains that
            self._crash(f"stopped by {type(error).__name__}", power=self.dice.strikes(Fault.POWER_LOSS))

    def _step(self) -> None:
        dice, random = self.dice, self.random
        if self.life is None:
            self._start()
            return
        life = self.life
        if life.state.draining and random.random() < 0.2:
            self._crash("stopped", power=False)
            return
        if random.random() < 0.5:
            self._pass_time(life)
        offer_ticks(life, self.outside, self.clock.ms, random)
        roll = random.random()
        if roll < 0.35:
            for _ in range(random.randint(1, 3)):
                command, ack = self.workload.next(self.clock.ms, self.history)
                life.offer(Sent(self.outside, command, ack))
        elif roll < 0.55:
            life.inbox.settle(self.workers.outcomes(self.clock.ms))
        elif roll < 0.65:
            lanes = [name for name in self.workload.lanes if self._pulled(life, name)]
            word = self.workers.words(lanes)
            if word is not None:
                life.offer(Sent(self.outside, word, AckLevel.ASYNC))
        elif roll < 0.75:
            life.sync()
        elif roll < 0.9:
            life.checkpoint_step()
        elif roll < 0.902:
            life.offer(Sent(self.outside, Drain(), AckLevel.ASYNC))
        elif roll < 0.94:
            life.state.timers.extend(self.clock.ms + 300_000, random.choice((3, 1_000)))
        if life.checkpointing and dice.strikes(Fault.CHECKPOINT_ABANDONED):
            life.abandon_checkpoint()
        if len(life.inbox) and random.random() < 0.8:
            self.medium.fuse(dice)
            try:
                life.turn()
            finally:
                self.medium.unfuse()
        if life.checkpointing and dice.strikes(Fault.CRASH_IN_CHECKPOINT):
            raise Crash
        if dice.strikes(Fault.CRASH):
            raise Crash
        if self.zombie is not None and dice.strikes(Fault.STALE_WRITER):
            self._write_stale(self.zombie, must_fail=True)

    def _pulled(self, life: Life, lane: str) -> bool:
        return lane.partition(":")[0] not in life.state.settings.pushed or self.random.random() < 0.02

    def _pass_time(self, life: Life) -> None:
        next_ms = life.pump.kernel.next_ms()
        told = self.passing.time(life, next_ms)
        if told:
            self.note(told)
        if next_ms is not None and next_ms <= self.clock.ms and self.random.random() < 0.9:
            life.inbox.time()

    # Starts and crashes.

    def _start(self) -> None:
        """Recover until it succeeds, then write the first frame of a new epoch."""
        self.lives += 1
        log = FaultyLog(self.medium.open(), self.dice, self.ledger)
        life = Life(log, self.shelf.open(), self.clock, self._nonce, self._act, self._turned)
        self._reconcile(life)
        if self.dice.strikes(Fault.CRASH_IN_RECOVERY):
            self.life = life
            raise Crash
        if self.zombie is not None and self.dice.strikes(Fault.STALE_WRITER):
            # No successor has written yet: if the old process writes now, the new one must recover again.
            self._write_stale(self.zombie, must_fail=False)
        self.life = life
        commands, self._first = self._first, []
        life.begin(commands)
        self.passing.begin(life)

    def _nonce(self) -> int:
        return self.random.getrandbits(63)

    def _reconcile(self, life: Life) -> None:
        """After recovery: the log has what it must have, and the state is what the log leads to."""

        async def read() -> list[tuple[Position, Frame]]:
            return [found async for found in life.log.read(start)]

        start, tail = run_now(life.log.start()), run_now(life.log.tail())
        lost = self.ledger.reconcile(run_now(read()), start, tail)
        if lost:
            self.twin, self.history = Twin(), History()
            self._known = len(self.ledger.frames)
        self._catch_up(None)
        check_same(life.state, self.twin.kernel.state)
        invariants.check(life.state)
        self.outside.recovered(life.store, self.history)
        self.note(f"recovered {self.twin.kernel.state.records} records, the log ends at {tail}")

    def _crash(self, reason: str, *, power: bool) -> None:
        self.note(f"{reason}{', power lost' if power else ''}")
        life, self.life = self.life, None
        if life is not None and life.checkpointing:
            life.abandon_checkpoint()
        if power:
            if not self.medium.shared:
                self.dice.note(Fault.TORN_TAIL)
            self.medium.lose_power(self.dice, self.ledger.synced)
            self.zombie = None
        else:
            self.medium.kill()
            # The process may not be dead, only slow: then it wakes up after its successor has started.
            keep = life is not None and life.pump.broken is None and self.medium.shared
            self.zombie = life if keep and isinstance(self.shelf, MemoryShelf) else None
        self.workers.crashed()
        tail = self._tail_left()
        self.outside.crashed(tail, power)

    def _tail_left(self) -> Position:
        """Where the log ends now, as a new reader sees it."""
        log = self.medium.open()
        run_now(log.open())
        tail = run_now(log.tail())
        self.medium.kill()
        return tail

    def _write_stale(self, zombie: Life, *, must_fail: bool) -> None:
        command, ack = self.workload.next(self.clock.ms, self.history)
        zombie.offer(Sent(self.outside, command, ack))
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
        if self.life is not None and not isinstance(turn.batch.commands[0], Start):
            self.passing.check(self.life)

    def _catch_up(self, turn: Turn | None) -> None:
        """Let the replica and the history see the new frames of the log."""
        ledger, twin, history = self.ledger, self.twin, self.history
        get = twin.kernel.state.store.get
        frames = ledger.frames[twin.frames :]
        if turn is not None:
            assert len(frames) == 1 and turn.position == ledger.tail, "a turn is one frame at the log's end"
        for position, frame in frames:
            records = twin.records(frame)
            applied = []
            for record in records:
                each = twin.kernel.apply(record)
                history.observe(record, each, get)
                applied.append(each)
            twin.frames += 1
            if twin.frames <= self._known:
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
            self.outside.started(effect, position)
            self.workers.deliver(effect)
        else:
            self.workers.abort(effect)

    # The second act: everything must end.

    def _finish(self) -> None:
        life = self._calm_life()
        commands: list[Command] = [Configure(Settings())]
        commands += [Resume(name) for name, lane in life.state.lanes.items() if lane.paused]
        commands += [Resize(tier, permits) for tier, permits in enumerate(TIER_PERMITS)]
        for command in commands:
            life.offer(Sent(self.outside, command, AckLevel.ASYNC))
        end_schedules(life, self.outside, self.clock.ms)
        end_groups(life, self.outside, self.history.groups.unfilled())
        rounds = 100 + 12 * life.state.live()
        while life.state.live() or len(life.inbox):
            rounds -= 1
            assert rounds > 0, f"these did not end: {[stuck(seen) for seen in self.history.live()]}"
            self._round(life)
        invariants.check(life.state)
        assert not self.history.live(), "nothing lives any more, by the history too"
        # Once more from the log: the final state survives.
        life.checkpoint_step()
        while life.checkpointing:
            life.checkpoint_step()
        self._crash("the end", power=False)
        self._start()

    def _calm_life(self) -> Life:
        """A run without work left over from before, that will not crash."""
        while True:
            self.zombie = None
            if self.life is None:
                self._guarded(self._start)
                continue
            self.life.abandon_checkpoint()
            while len(self.life.inbox):
                self.life.turn()
            if not self.life.state.draining:
                return self.life
            self._crash("stopped", power=False)

    def _round(self, life: Life) -> None:
        life.turn()
        life.sync()
        invariants.check_quick(life.state)
        life.inbox.settle(self.workers.answer_all())
        for name, lane in life.state.lanes.items():
            if not lane.pushed and lane.pending and not lane.turns:
                wanted = type_of(name) if lane.serial and self.random.random() < 0.5 else name
                life.offer(Sent(self.outside, Demand(NAMES[0], wanted, 50), AckLevel.ASYNC))
        if not len(life.inbox):
            next_ms = life.pump.kernel.next_ms()
            assert next_ms is not None or not life.state.live(), (
                f"nothing will ever happen to {[stuck(seen) for seen in self.history.live()]}"
            )
            if next_ms is not None:
                self.clock.move(max(0, next_ms - self.clock.ms))
                life.inbox.time()

    def report(self) -> Report:
        moves = {
            f"{old.name} -> {new.name}": count
            for (old, new), count in self.history.moves.items()
            if old is not None
        }
        return Report(
            seeds=1, steps=self.step, records=self.twin.kernel.state.records, lives=self.lives,
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
