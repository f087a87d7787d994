"""The entry for commands: checked, handed to the inbox, answered once their record is applied."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from duetime.clock import Clock
from duetime.engine.admission.guard import Guard
from duetime.engine.phase import Phase
from duetime.engine.predictions.predictor import Predictor
from duetime.engine.shell.inbox import Inbox, PendingCommand, command_bytes
from duetime.errors import InvalidField
from duetime.kernel.state import State
from duetime.protocol import bounds
from duetime.protocol.command import Command, SetLane
from duetime.protocol.intent import Intent
from duetime.protocol.reply import Answer, Existing, Refusal
from duetime.protocol.terms import AckLevel
from duetime.protocol.view import view_of
from duetime.refusals import error_of


class Commands:
    """Takes commands of callers and of the engine's own parts."""

    def __init__(
        self, state: State, phase: Phase, clock: Clock, inbox: Inbox, guard: Guard, predictor: Predictor
    ) -> None:
        self._state = state
        self._phase = phase
        self._clock = clock
        self._inbox = inbox
        self._guard = guard
        self._predictor = predictor

    def request(
        self, command: Command, ack: AckLevel, reply: Callable[[Answer | Exception], None], size: int = 128
    ) -> None:
        """Hand in a command; `reply` is called once."""
        if self._phase.accepts:
            self._inbox.put(PendingCommand(command, ack, reply, size))
        else:
            reply(self._phase.refusal())

    async def ask(self, command: Command, ack: AckLevel = AckLevel.DURABLE) -> Any:
        """Hand in a command and wait for its answer; a refusal is raised."""
        problem = bounds.command(command)
        if problem is not None:
            raise InvalidField(problem)
        self._guard.admit_command(command)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.request(command, ack, resolver(future), command_bytes(command))
        answer = await future
        if isinstance(answer, Refusal):
            raise error_of(answer)
        if isinstance(command, SetLane):
            self._predictor.look(self._state.lane_settings)
        if isinstance(answer, Existing):
            answer = answer.intent
        return view_of(answer, self._clock.now_ms()) if isinstance(answer, Intent) else answer


def resolver(future: asyncio.Future[Any]) -> Callable[[Answer | Exception], None]:
    """A reply that ends a future."""

    def reply(answer: Answer | Exception) -> None:
        if future.done():
            return
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    return reply
