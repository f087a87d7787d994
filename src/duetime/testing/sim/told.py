"""What callers and workers were told, and the laws about it. A crash does not undo it.

A caller that was answered may rely on the answer; a worker that was handed a delivery has started it.
"""

from __future__ import annotations

from duetime.log.log import Position
from duetime.protocol.command import Command, Submit
from duetime.protocol.effect import Deliver
from duetime.protocol.intent import FINAL, Intent
from duetime.protocol.reply import Answer
from duetime.protocol.terms import AckLevel, Guarantee
from duetime.store.store import KernelStore
from duetime.testing.laws.checkers import IntentLives
from duetime.testing.sim.faults import Ledger


class Sent:
    """One request in progress; called with its answer."""

    def __init__(self, told: Told, command: Command, ack: AckLevel) -> None:
        self._told = told
        self.command = command
        self.ack = ack
        self.position: Position = 0
        """The position after the record, once it is written."""
        self.answered = False

    def __call__(self, answer: Answer | Exception) -> None:
        assert not self.answered, f"answered twice: {self.command}"
        self.answered = True
        if not isinstance(answer, Exception):
            self._told.acknowledged(self, answer)


class Told:
    """Answers given and deliveries started."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._answered_to: Position = 0
        self._durable_to: Position = 0
        self._made: dict[str, Position] = {}
        self._started: dict[tuple[str, int], Position] = {}
        self._once: set[tuple[str, int]] = set()

    def acknowledged(self, sent: Sent, answer: Answer) -> None:
        """A caller got an answer: it may rely on the record from here on, as its ack level promises."""
        assert sent.position <= self._ledger.tail, "answered before it was written"
        if sent.ack >= AckLevel.DURABLE:
            assert sent.position <= self._ledger.synced, "answered DURABLE before it was synced"
            self._durable_to = max(self._durable_to, sent.position)
        self._answered_to = max(self._answered_to, sent.position)
        if isinstance(sent.command, Submit) and isinstance(answer, list):
            for reply in answer:
                if isinstance(reply, Intent):
                    self._made[reply.id] = sent.position

    def started(self, effect: Deliver, position: Position) -> None:
        """A worker has the delivery. The same delivery twice means that its record was lost in between."""
        place = (effect.id, effect.delivery)
        assert position <= self._ledger.tail, f"{place} was started before its record was written"
        # The name of a trigger may be used again when its intent is forgotten.
        assert place not in self._started or "@now-" in effect.id, f"{place} was handed out twice"
        self._started[place] = position
        if effect.terms.guarantee is Guarantee.AT_MOST_ONCE:
            assert position <= self._ledger.synced, f"{place} is at most once; its record was not synced"
            assert place not in self._once, f"{place} is at most once and was started twice"
            self._once.add(place)

    def crashed(self, tail: Position, power: bool) -> None:
        """The log ends at `tail` now: what was promised must be there."""
        promised = self._durable_to if power else self._answered_to
        assert tail >= promised, f"the log ends at {tail}, and what was acknowledged went to {promised}"
        self._answered_to = min(self._answered_to, tail)
        self._durable_to = min(self._durable_to, tail)
        if power:  # only now may an intent be handed out again under a number that was used
            self._made = {id: position for id, position in self._made.items() if position <= tail}
            self._started = {place: position for place, position in self._started.items() if position <= tail}

    def recovered(self, store: KernelStore, history: IntentLives) -> None:
        """Every acknowledged intent exists, unless it ended and was forgotten."""
        for id in self._made:
            if store.get(id) is None:
                assert history.seen[id].status in FINAL, f"{id!r} was acknowledged and is lost"
