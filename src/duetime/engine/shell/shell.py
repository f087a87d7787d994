"""Append, apply, act: the order in which the engine works, without an event loop.

A step takes a batch from the inbox, has the pump append and apply it, and returns what is to be done as data
(`Acts`). Answers and deliveries that need their record on stable storage wait here until `synced` releases
them. The shell awaits nothing but the log and owns no task and no timer. The asyncio engine and the simulator
both drive it, so that the simulator tests the order that runs in production.
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

from duetime.clock import Clock
from duetime.engine.shell.inbox import Asked, Inbox, PumpBatch, shares
from duetime.engine.shell.known_answers import sift
from duetime.engine.shell.pump import Pump, Turn
from duetime.errors import NoSpace, Refused
from duetime.kernel.state import State
from duetime.log.log import Position
from duetime.protocol.command import Advance, Command, Start
from duetime.protocol.effect import Change, Deliver, Effect
from duetime.protocol.intent import DISPATCHING
from duetime.protocol.reply import Answer
from duetime.protocol.terms import AckLevel, Guarantee

_DURABLE = AckLevel.DURABLE


class Acts(Struct):
    """What is to be done now. The driver carries it out in the order of the fields."""

    effects: list[Effect] = field(default_factory=list)
    """For the channels."""
    replies: list[tuple[Asked, Answer | Exception]] = field(default_factory=list)
    """For the callers."""
    sync: AckLevel | None = None
    """How soon the log must be synced up to `position`: DURABLE means now. None: no sync is needed."""
    position: Position = 0
    changes: list[Change] = field(default_factory=list)
    """For waiters and observers."""
    turn: Turn | None = None
    """The batch that was written, if one was."""
    known: list[tuple[Asked, Answer]] = field(default_factory=list)
    """Requests that needed no record. Their answers are among the replies, or wait for the next sync."""
    full: bool = False
    """The disk has no room. Outcomes and time are in the inbox again: try the next step later."""
    failure: Exception | None = None
    """The engine must stop: only a new one, recovered from the log, may go on."""


class _Waiting(Struct):
    """What waits until everything up to a position is on stable storage."""

    position: Position
    effects: list[Effect]
    replies: list[tuple[Asked, Answer]]


class Shell:
    """Orders what follows from each batch."""

    def __init__(self, pump: Pump, inbox: Inbox, clock: Clock) -> None:
        self.pump = pump
        self._inbox = inbox
        self._clock = clock
        self._waiting: deque[_Waiting] = deque()

    def waits(self) -> bool:
        """Whether anything waits for a sync."""
        return bool(self._waiting)

    async def begin(self, commands: list[Command]) -> Acts:
        """Write the first frame of a new epoch. It wins or loses by its place on the log."""
        epoch = self.pump.kernel.state.epoch + 1
        batch = PumpBatch([Start(epoch), *commands], [[] for _ in (epoch, *commands)], _DURABLE, [])
        return self._turned(await self.pump.turn(batch, epoch), Acts())

    async def step(self) -> Acts:
        """Write the next batch of the inbox and apply it. With an empty inbox nothing is to be done."""
        acts, batch = Acts(), self._inbox.take()
        try:
            if batch.doubtful:
                self._answer_known(batch, acts)
            if batch.tick and not batch.commands:
                batch.commands.append(Advance())
                batch.replies.append([])
            if batch.commands:
                self._turned(await self.pump.turn(batch), acts)
        except NoSpace as error:
            acts.replies += [(request, error) for request in batch.requests()]
            acts.full = True
            self._inbox.put_back(batch)
        except Refused as error:
            acts.replies += [(request, error) for request in self._inbox.sort_out(batch)]
        except Exception as error:
            acts.replies += [(request, error) for request in batch.requests()]
            acts.failure = error
        return acts

    def synced(self, position: Position) -> Acts:
        """Everything up to here is on stable storage: release what waited for it. A delivery whose intent was
        cancelled or taken back in the meantime is dropped."""
        acts, waiting, state = Acts(), self._waiting, self.pump.kernel.state
        while waiting and waiting[0].position <= position:
            released = waiting.popleft()
            acts.effects += [effect for effect in released.effects if _is_out(state, effect)]
            acts.replies += released.replies
        return acts

    def abandon(self, error: Exception) -> Acts:
        """The engine stops: every caller is answered with the error."""
        acts = Acts(replies=[(request, error) for request in self._inbox.refuse_all()])
        for waiting in self._waiting:
            acts.replies += [(request, error) for request, _ in waiting.replies]
        self._waiting.clear()
        return acts

    def _answer_known(self, batch: PumpBatch, acts: Acts) -> None:
        """Answer requests that need no record. A DURABLE answer waits until the records it is based on are
        synced."""
        acts.known = sift(self.pump.kernel.state, batch, self._clock.now_ms())
        waiting = [known for known in acts.known if known[0].ack >= _DURABLE]
        acts.replies += [known for known in acts.known if known[0].ack < _DURABLE]
        if waiting:
            acts.sync, acts.position = _DURABLE, self.pump.position
            self._waiting.append(_Waiting(acts.position, [], waiting))

    def _turned(self, turn: Turn, acts: Acts) -> Acts:
        """A batch was written and applied: order what may go now and what waits for a sync."""
        acts.turn, acts.changes = turn, turn.changes
        acts.effects, later = _split(turn)
        waiting: list[tuple[Asked, Answer]] = []
        now = acts.replies
        for requests, answer in zip(turn.batch.replies, turn.answers, strict=True):
            for share in shares(requests, answer):
                if share[0].ack >= _DURABLE:
                    waiting.append(share)
                else:
                    now.append(share)
        if later or waiting:
            self._waiting.append(_Waiting(turn.position, later, waiting))
        at_once = later or waiting or acts.sync is not None
        acts.sync = _DURABLE if at_once else turn.batch.ack
        acts.position = turn.position
        return acts


def _split(turn: Turn) -> tuple[list[Effect], list[Effect]]:
    """Effects that may go now, and those that must wait until their record is synced: deliveries
    at most once, and those of intents whose own DURABLE submit is in this batch."""
    durable = turn.batch.ack >= _DURABLE
    now: list[Effect] = []
    later: list[Effect] = []
    for effect in turn.effects:
        if type(effect) is Deliver:
            terms = effect.terms
            if terms.guarantee is Guarantee.AT_MOST_ONCE or (durable and terms.ack >= _DURABLE):
                later.append(effect)
                continue
        now.append(effect)
    return now, later


def _is_out(state: State, effect: Effect) -> bool:
    """Whether the intent is still handed out under this delivery number."""
    intent = state.store.get(effect.id)
    return intent is not None and intent.status is DISPATCHING and intent.delivery == effect.delivery
