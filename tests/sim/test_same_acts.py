"""The asyncio engine and the simulator's engine do the same for the same script.

A script is played to the simulator's engine first, which also decides how it goes on; then the same steps are
played to the asyncio engine. What the shell orders and what channels and callers see must be equal, in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import Any

import pytest
from msgspec import Struct

from duetime.engine import engine as engine_module
from duetime.engine.dispatcher import Dispatcher
from duetime.engine.engine import Engine
from duetime.engine.options import EngineOptions, settings_commands
from duetime.engine.shell.shell import Acts, Shell
from duetime.errors import Damaged, DuetimeError, NoSpace
from duetime.limits import FRAME_BYTES_MAX
from duetime.log.frame import Frame
from duetime.log.log import Position
from duetime.log.memory import MemoryLog
from duetime.protocol.command import Advance, Cancel, Command, FireNow, Submit
from duetime.protocol.effect import Abort, Deliver, Effect
from duetime.protocol.intent import Item
from duetime.protocol.outcome import Done, Failed, Outcome, Settlement
from duetime.protocol.reply import Answer
from duetime.protocol.terms import AckLevel, Guarantee, Task
from duetime.store.memory import MemoryStore
from duetime.testing.sim.engine_run import EngineRun
from duetime.testing.sim.faults import Ledger
from duetime.testing.sim.replica import plain
from duetime.testing.sim.told import Sent, Told
from duetime.testing.time import EPOCH_MS, ManualClock
from tests.unit.insight.rig import SETTINGS, HandChannel, run
from tests.unit.kernel.bench import terms

ASYNC, DEFERRED, DURABLE = AckLevel.ASYNC, AckLevel.BATCH_DEFERRED, AckLevel.DURABLE
HOUR_MS = 3_600_000
# Nothing is synced and no checkpoint is made before the script says so.
OPTIONS = EngineOptions(settings=SETTINGS, flush_ms=HOUR_MS, batch_deferred_ms=HOUR_MS, checkpoint_ms=HOUR_MS)
# Passes of the loop in which the engine does all that follows from one step.
_PASSES = 30


class Step(Struct):
    """What happens outside at one moment; then the engine takes it in."""

    asked: tuple[tuple[Command, AckLevel], ...] = ()
    outcomes: tuple[Settlement, ...] = ()
    passed_ms: int = 0
    append_fails: Exception | None = None
    sync: bool = False
    """The log is synced afterwards."""


class ScriptedLog(MemoryLog):
    """Fails when the script says so. In the asyncio engine, a sync ends when the script says so."""

    def __init__(self, *, at_once: bool) -> None:
        super().__init__()
        self.error: Exception | None = None
        self.at_once = at_once
        self._syncing: asyncio.Future[None] | None = None

    async def append(self, at: Position, frame: Frame) -> Position:
        error, self.error = self.error, None
        if error is not None:
            raise error
        return await super().append(at, frame)

    async def sync(self) -> Position:
        if not self.at_once:
            self._syncing = asyncio.get_running_loop().create_future()
            await self._syncing
        return await super().sync()

    def end_sync(self) -> None:
        if self._syncing is not None and not self._syncing.done():
            self._syncing.set_result(None)


class Seen:
    """What channels and callers saw, in order."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def effect(self, effect: Effect) -> None:
        self.events.append(f"{type(effect).__name__} {effect.id}#{effect.delivery}")

    def answer(self, command: Command, answer: Answer | Exception) -> None:
        self.events.append(f"{_name(command)}: {_shown(answer)}")


def _name(command: Command) -> str:
    ids = [item.id for item in command.items] if isinstance(command, Submit) else [getattr(command, "id", "")]
    return f"{type(command).__name__} {' '.join(ids)}"


def _shown(answer: Answer | Exception) -> str:
    return type(answer).__name__ if isinstance(answer, Exception) else plain(answer).hex()


def ordered(acts: Acts) -> tuple[Any, ...]:
    """What the shell ordered, as data without objects of one engine."""
    return (
        [(type(effect).__name__, effect.id, effect.delivery) for effect in acts.effects],
        [(_name(request.command), _shown(answer)) for request, answer in acts.replies],
        acts.sync,
        acts.position,
        acts.changes,
        len(acts.known),
        acts.full,
        type(acts.failure),
    )


@pytest.fixture
def orders(monkeypatch) -> Iterator[list[tuple[Any, ...]]]:
    """Everything that a shell orders from here on, except that nothing is to be done."""
    found: list[tuple[Any, ...]] = []

    def keep(acts: Acts) -> Acts:
        if acts != Acts():
            found.append(ordered(acts))
        return acts

    begin, step, synced = Shell.begin, Shell.step, Shell.synced

    async def told_begin(self: Shell, commands: list[Command]) -> Acts:
        return keep(await begin(self, commands))

    async def told_step(self: Shell) -> Acts:
        return keep(await step(self))

    monkeypatch.setattr(Shell, "begin", told_begin)
    monkeypatch.setattr(Shell, "step", told_step)
    monkeypatch.setattr(Shell, "synced", lambda self, position: keep(synced(self, position)))
    monkeypatch.setattr(engine_module, "DISK_FULL_RETRY_S", 0)
    yield found


class Simulated:
    """The simulator's engine, driven by a script."""

    def __init__(self) -> None:
        self.seen, self.clock, self.log = Seen(), ManualClock(), ScriptedLog(at_once=True)
        self.out: dict[str, int] = {}
        self.engine = EngineRun(
            self.log, MemoryStore(), self.clock, count(1).__next__, self._act, lambda turn: None
        )
        self.engine.begin(settings_commands(self.engine.state, OPTIONS))
        self.engine.sync()

    def play(self, step: Step) -> None:
        self.clock.set_ms(self.clock.now_ms() + step.passed_ms)
        self.log.error = step.append_fails
        self.engine.inbox.settle(list(step.outcomes))
        for command, ack in step.asked:
            self.engine.offer(_Told(command, ack, self.seen))
        try:
            while len(self.engine.inbox):
                self.engine.turn()
        except DuetimeError as error:
            assert error is step.append_fails
        if step.sync:
            self.engine.sync()

    def _act(self, effect: Effect, position: Position) -> None:
        self.seen.effect(effect)
        if isinstance(effect, Deliver):
            self.out[effect.id] = effect.delivery
        else:
            self.out.pop(effect.id, None)


class _Told(Sent):
    """A request of a script; notes its answer."""

    def __init__(self, command: Command, ack: AckLevel, seen: Seen) -> None:
        super().__init__(Told(Ledger()), command, ack)
        self._seen = seen

    def __call__(self, answer: Answer | Exception) -> None:
        self._seen.answer(self.command, answer)


class TellingChannel(HandChannel):
    """Notes what it is handed."""

    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self._seen = seen

    def deliver(self, delivery: Deliver) -> None:
        self._seen.effect(delivery)

    def abort(self, abort: Abort) -> None:
        self._seen.effect(abort)


class Real:
    """The asyncio engine, driven by a script."""

    def __init__(self) -> None:
        self.seen, self.clock, self.log = Seen(), ManualClock(), ScriptedLog(at_once=False)
        self.channel = TellingChannel(self.seen)
        self.engine = Engine(self.log, MemoryStore(), self.clock, Dispatcher({Task: self.channel}), OPTIONS)
        self.engine.observe(lambda change: None)

    async def play_all(self, script: list[Step]) -> None:
        await self.engine.start()
        await self._follow()
        self.log.end_sync()
        for step in script:
            self.clock.set_ms(self.clock.now_ms() + step.passed_ms)
            self.log.error = step.append_fails
            if step.outcomes:
                self.channel.settle(list(step.outcomes))
            for command, ack in step.asked:
                self.engine.request(command, ack, self._reply(command))
            await self._follow()
            if step.sync:
                self.log.end_sync()
                await self._follow()

    def _reply(self, command: Command) -> Callable[[Answer | Exception], None]:
        return lambda answer: self.seen.answer(command, answer)

    async def _follow(self) -> None:
        for _ in range(_PASSES):
            await asyncio.sleep(0)  # tidy: a pass of the loop


def check_same(script: list[Step], simulated: Simulated, orders: list[tuple[Any, ...]]) -> None:
    """Play a script that the simulator's engine has played to the asyncio engine."""

    async def main() -> None:
        expected, orders[:] = list(orders), []
        real = Real()
        await real.play_all(script)
        assert real.seen.events == simulated.seen.events
        assert orders == expected
        real.log.end_sync()
        real.log.at_once = True
        await real.engine.close(0)

    run(main())


def submit(
    id: str, ack: AckLevel = ASYNC, *, at_ms: int = EPOCH_MS, payload: bytes = b"", **more: Any
) -> tuple[Command, AckLevel]:
    return Submit((terms(ack=ack, **more),), (Item(id, 0, at_ms, payload),)), ack


ONCE = Guarantee.AT_MOST_ONCE
LATER_MS = EPOCH_MS + 60_000
SCRIPT = [
    Step((submit("a"), submit("b", DURABLE), submit("c", guarantee=ONCE), submit("d", DURABLE))),
    Step(((Cancel("c"), ASYNC), (Cancel("d"), DURABLE))),  # both wait for the sync: neither is delivered
    Step(sync=True),
    Step((submit("a"), submit("b", DURABLE), submit("e", DEFERRED)), sync=True),  # two are known already
    Step(outcomes=(Settlement("a", 1, Done()), Settlement("b", 1, Failed("error", "no")))),
    Step(outcomes=(Settlement("a", 1, Done()),), asked=((FireNow("b"), DURABLE),), sync=True),
    Step((submit("f"),), (Settlement("e", 1, Done()),), append_fails=NoSpace("full")),
    Step((submit("g", payload=b"x" * FRAME_BYTES_MAX), submit("h")), sync=True),  # one fits no frame
    Step(((Advance(), ASYNC),), passed_ms=60_000, sync=True),
    Step(
        (submit("i", DURABLE, at_ms=LATER_MS), submit("j", at_ms=LATER_MS)), append_fails=Damaged("a segment")
    ),
]


def test_a_script_with_everything_that_can_happen_to_a_batch(orders):
    simulated = Simulated()
    for step in SCRIPT:
        simulated.play(step)
    seen = simulated.seen.events
    started = [event for event in seen if event.startswith("Deliver")]
    assert [event.split()[1] for event in started] == ["a#1", "b#1", "e#1", "b#2", "h#1"]
    assert {"Submit f: NoSpace", "Submit g: TooLarge", "Submit i: Damaged"} <= set(seen)
    check_same(SCRIPT, simulated, orders)


@pytest.mark.parametrize("seed", range(1, 13))
def test_random_scripts(seed, orders):
    random, simulated = Random(seed), Simulated()
    script: list[Step] = []
    for number in range(60):
        script.append(_random_step(random, simulated, number))
        simulated.play(script[-1])
    assert len(orders) > 60
    check_same(script, simulated, orders)


def _random_step(random: Random, simulated: Simulated, number: int) -> Step:
    """A few requests and outcomes, and perhaps a sync."""
    now_ms = simulated.clock.now_ms()
    asked: list[tuple[Command, AckLevel]] = []
    for place in range(random.randint(0, 3)):
        ack = random.choice((ASYNC, DEFERRED, DURABLE))
        known = f"{random.randint(0, number)}.0"
        if random.random() < 0.7:
            id = known if random.random() < 0.2 else f"{number}.{place}"
            guarantee = random.choice((Guarantee.AT_LEAST_ONCE, Guarantee.AT_MOST_ONCE))
            at_ms = now_ms + random.choice((0, 0, 500))
            asked.append((submit(id, ack, at_ms=at_ms, guarantee=guarantee)[0], ack))
        else:
            asked.append((random.choice((Cancel(known), FireNow(known), Advance())), ack))
    outcomes: list[Settlement] = []
    for id in random.sample(sorted(simulated.out), min(len(simulated.out), random.randint(0, 3))):
        outcome: Outcome = random.choice((Done(), Done(b"1"), Failed("error", "no")))
        outcomes.append(Settlement(id, simulated.out.pop(id), outcome))
    full = NoSpace("full") if random.random() < 0.1 and (asked or outcomes) else None
    passed_ms = random.choice((0, 0, 20, 700))
    return Step(tuple(asked), tuple(outcomes), passed_ms, full, random.random() < 0.4)
