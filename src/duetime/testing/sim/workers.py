"""What runs the deliveries in the simulator: the engine's own channels, and workers that pull. Both
misbehave.

A pushed delivery runs in the engine's process and ends with it. A worker is another process: it keeps what
it pulled through the engine's crashes, may vanish silently, and may return with what it had.
"""

from __future__ import annotations

from msgspec import Struct

from duetime.protocol.command import Beat, Command, Demand, Leave
from duetime.protocol.effect import Abort, Deliver
from duetime.protocol.outcome import (
    Done,
    Expired,
    Failed,
    Lost,
    Outcome,
    Rejected,
    Returned,
    Settlement,
    Snoozed,
)
from duetime.testing.sim.faults import Dice, Fault

NAMES = ("w0", "w1", "w2")
# Old deliveries that may still be answered, long after their outcome is needed.
_LATE_MAX = 30


class HeldDelivery(Struct):
    """A delivery that is running."""

    effect: Deliver
    until_step: int


class Workers:
    """All deliveries handed out and not answered yet."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._random = dice.random
        self.step = 0
        self.held: dict[tuple[str, int], HeldDelivery] = {}
        self._late: list[Settlement] = []
        weights = [[6, 3, 1, 1, 1, 1], [3, 6, 2, 1, 0, 1], [10, 1, 0, 0, 0, 0], [2, 3, 3, 3, 1, 1]]
        self._weights = self._random.choice(weights)

    def deliver(self, effect: Deliver) -> None:
        slow = self._dice.strikes(Fault.SLOW_CHANNEL)
        steps = self._random.randint(10, 60) if slow else self._random.randint(0, 6)
        self.held[(effect.id, effect.delivery)] = HeldDelivery(effect, self.step + steps)

    def abort(self, effect: Abort) -> None:
        """Most deliveries stop when aborted; some answer all the same."""
        held = self.held.pop((effect.id, effect.delivery), None)
        if held is not None:
            self._forget(held.effect)

    def crashed(self) -> None:
        """The engine's process is gone, and what ran in it."""
        for place, held in list(self.held.items()):
            if not held.effect.consumer:
                del self.held[place]
                self._forget(held.effect)

    def _forget(self, effect: Deliver) -> None:
        if len(self._late) < _LATE_MAX:
            self._late.append(_settlement(effect, self._outcome()))

    def _outcome(self) -> Outcome:
        random = self._random
        match random.choices(range(6), self._weights)[0]:
            case 0:
                return Done(random.choice((None, None, b"1")))
            case 1:
                delay_ms = random.choice((-1, -1, -1, 0, 700))
                return Failed("http", "502 Bad Gateway", 502, delay_ms)
            case 2:
                return Snoozed(random.choice((0, 40, 3_000)))
            case 3:
                return Rejected("bad", "it can never work")
            case 4:
                return Expired("too late for it")
        return Lost("nobody knows") if random.random() < 0.7 else Returned("it was told to stop")

    def outcomes(self, now_ms: int) -> list[Settlement]:
        """The settlements that arrive now: valid outcomes, and some that must be refused."""
        random, strikes = self._random, self._dice.strikes
        found: list[Settlement] = []
        ready = [place for place, held in self.held.items() if held.until_step <= self.step]
        for place in ready[: random.randint(1, 6)]:
            effect = self.held.pop(place).effect
            outcome = self._outcome()
            if isinstance(outcome, Failed) and random.random() < 0.1:
                outcome = Failed("http", "429", 429, -1, now_ms + random.randint(0, 9_000))
            found.append(_settlement(effect, outcome, f"{place[0]} ran" if place[1] % 2 else None))
            if strikes(Fault.DOUBLE_OUTCOME):
                found.append(_settlement(effect, self._outcome()))
            if strikes(Fault.WRONG_DELIVERY):
                wrong = effect.delivery + random.choice((-1, 1, 2))
                found.insert(0, Settlement(effect.id, wrong, Done(), consumer=effect.consumer))
            if strikes(Fault.WRONG_CONSUMER):
                other = random.choice([name for name in ("", *NAMES) if name != effect.consumer])
                found.insert(0, Settlement(*place, Done(), consumer=other))
            if random.random() < 0.2:
                self._forget(effect)
        if self._late and strikes(Fault.LATE_OUTCOME):
            found.append(self._late.pop(random.randrange(len(self._late))))
        return found

    def answer_all(self) -> list[Settlement]:
        """Settle everything, mostly with success."""
        found = []
        for place in list(self.held):
            effect = self.held.pop(place).effect
            outcome: Outcome = Done() if self._random.random() < 0.9 else Failed("http", "503", 503)
            found.append(_settlement(effect, outcome))
        return found

    def words(self, lanes: list[str]) -> Command | None:
        """A worker's command other than outcomes."""
        random = self._random
        name = random.choice(NAMES)
        if self._dice.strikes(Fault.WORKER_VANISHED):
            self._let_go(name)
            return None
        roll = random.random()
        if roll < 0.25:
            return Beat(name)
        if roll < 0.35:
            self._let_go(name)
            return Leave(name)
        if not lanes:
            return None
        return Demand(name, random.choice(lanes), random.choice((0, 1, 1, 2, 5)), random.random() < 0.7)

    def _let_go(self, name: str) -> None:
        for place, held in list(self.held.items()):
            if held.effect.consumer == name:
                del self.held[place]
                self._forget(held.effect)


def _settlement(effect: Deliver, outcome: Outcome, log: str | None = None) -> Settlement:
    """The settlement of a delivery, sent by its holder."""
    return Settlement(effect.id, effect.delivery, outcome, log, effect.consumer)
