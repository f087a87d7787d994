"""Everything from outside, in order, until the pump takes it. Owns what waits to be written.

Submits that arrive together become one command, and so do outcomes: one record, one apply loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, assert_never, cast

from msgspec import Struct, field
from msgspec.structs import replace

from duetime.limits import BATCH_BYTES_MAX, BATCH_ITEMS_MAX, FRAME_BYTES_MAX
from duetime.protocol.command import Command, Settle, Submit
from duetime.protocol.intent import Item, Ties
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
from duetime.protocol.record import encode
from duetime.protocol.reply import Answer, Refusal, Reply
from duetime.protocol.terms import AckLevel, Terms
from duetime.refusals import error_of

# The approximate size of an item on the log without its payload.
_ITEM_BYTES = 96
# The size of ties without their names.
_TIES_BYTES = 48
# More than ever wait.
_ALL = 1 << 62


class PendingCommand(Struct, eq=False):
    """A command and its caller. `reply` is called once: with an answer or an error."""

    command: Command
    ack: AckLevel
    reply: Callable[[Answer | Exception], None]
    bytes: int = 128


class Single(Struct, eq=False, gc=False):
    """One new intent and its caller: the most frequent request, without any wrapping."""

    terms: Terms
    item: Item
    ack: AckLevel
    future: asyncio.Future[Any]
    bytes: int

    @property
    def command(self) -> Submit:
        """The command it would be alone."""
        return Submit((self.terms,), (self.item,))

    def reply(self, answer: Answer | Exception) -> None:
        future = self.future
        if future.done():
            return
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer if type(answer) is not Refusal else error_of(answer))


Counted = Callable[[list[bool] | Exception], None]
"""Called once: with whether each outcome counted, or with an error."""


class CountTicket(Struct, eq=False):
    """A caller asks which of its outcomes counted. It is called when all are written, or one cannot be."""

    counted: Counted | None
    missing: int
    found: list[bool] = field(default_factory=list)

    def take(self, answer: list[bool] | Exception) -> None:
        """Some of the outcomes are written, or cannot be."""
        counted = self.counted
        if counted is None:
            return
        if isinstance(answer, Exception):
            self.counted = None
            counted(answer)
            return
        self.found += answer
        self.missing -= len(answer)
        if not self.missing:
            counted(self.found)


class OutcomeBatch(Struct, eq=False):
    """Outcomes that wait to be written; with a ticket if their caller asks which of them counted."""

    settlements: list[Settlement]
    ticket: CountTicket | None = None

    @property
    def ack(self) -> AckLevel:
        """The answer does not wait for the sync, which comes soon: see `_take_outcomes`."""
        return AckLevel.BATCH_DEFERRED

    @property
    def command(self) -> Settle:
        """What they would be alone."""
        return Settle(tuple(self.settlements))

    def reply(self, answer: Answer | Exception) -> None:
        if self.ticket is not None:
            self.ticket.take(cast("list[bool] | Exception", answer))

    def split(self, count: int) -> tuple[OutcomeBatch, OutcomeBatch]:
        """The first `count`, and the rest."""
        first, rest = self.settlements[:count], self.settlements[count:]
        return OutcomeBatch(first, self.ticket), OutcomeBatch(rest, self.ticket)


Asked = PendingCommand | Single | OutcomeBatch


class PumpBatch(Struct):
    """What the pump writes as one frame."""

    commands: list[Command]
    replies: list[list[Asked]]
    """For each command, the requests it answers: see `shares`."""
    ack: AckLevel
    outcomes: list[OutcomeBatch]
    """Outcomes in this batch: they must not be lost when it cannot be written."""
    doubtful: bool = False
    """Whether a request in it may already be known."""
    tick: bool = False
    """Whether a timer rang: an otherwise empty batch then writes an `Advance`."""

    def requests(self) -> Iterator[Asked]:
        """All requests that wait for an answer."""
        return chain.from_iterable(self.replies)


class Inbox:
    """A queue that forms batches."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._requests: deque[PendingCommand | Single] = deque()
        self._outcomes: deque[OutcomeBatch] = deque()
        self._outcome_count = 0
        self._doubtful = False
        """Whether a request in it may already be known."""
        self.tick = False
        self._together = _ALL
        """Maximum requests and outcomes in the next batch: fewer after one that was too large."""

    def __len__(self) -> int:
        return len(self._requests) + self._outcome_count + self.tick

    def put(self, request: PendingCommand | Single) -> None:
        self._requests.append(request)
        if type(request) is Single:
            item = request.item
            if item.key is not None or not item.fresh or item.request is not None:
                self._doubtful = True
        else:
            self._doubtful = True
        self._wake()

    def settle(self, settlements: list[Settlement], counted: Counted | None = None) -> None:
        """Outcomes of deliveries. `counted` is called once: with whether each counted, or with an error."""
        if not settlements:
            if counted is not None:
                counted([])
            return
        outcomes = self._outcomes
        self._outcome_count += len(settlements)
        if counted is not None:
            outcomes.append(OutcomeBatch(settlements, CountTicket(counted, len(settlements))))
        elif outcomes and outcomes[-1].ticket is None:
            outcomes[-1].settlements += settlements
        else:
            outcomes.append(OutcomeBatch(list(settlements)))
        self._wake()

    def time(self) -> None:
        """Time has come for something."""
        self.tick = True
        self._wake()

    def refuse_all(self) -> list[Asked]:
        """Empty the inbox; returns the requests, so that their callers can be told why."""
        waiting: list[Asked] = [*self._requests, *self._outcomes]
        self._requests.clear()
        self._outcomes.clear()
        self._outcome_count = 0
        return waiting

    def put_back(self, batch: PumpBatch) -> None:
        """A batch could not be written: keep its outcomes and the passing of time for a later batch. Its
        callers are told, so they wait for nothing more."""
        self._keep([OutcomeBatch(list(outcomes.settlements)) for outcomes in batch.outcomes])
        self.tick = True

    def sort_out(self, batch: PumpBatch) -> list[Asked]:
        """A batch could not be encoded: return the requests at fault, and take the rest again. If each
        could be written alone, they are only too many: the next batch has half of them."""
        requests = [request for request in batch.requests() if not isinstance(request, OutcomeBatch)]
        settlements = [settlement for outcomes in batch.outcomes for settlement in outcomes.settlements]
        innocent = [request for request in requests if _writable(request.command)]
        if len(innocent) == len(requests) and all(map(_writable, settlements)):
            self._together = (len(requests) + len(settlements)) // 2
            if not self._together:
                innocent = []  # it is alone: taking it again would never end
        self._requests.extendleft(reversed(innocent))
        self._keep(
            [OutcomeBatch(list(map(_storable, each.settlements)), each.ticket) for each in batch.outcomes]
        )
        self.tick = self.tick or batch.tick
        return [request for request in requests if request not in innocent]

    def _keep(self, outcomes: list[OutcomeBatch]) -> None:
        """These are written before all others."""
        self._outcomes.extendleft(reversed(outcomes))
        self._outcome_count += sum(len(each.settlements) for each in outcomes)

    def take(self) -> PumpBatch:
        """The next batch, within the limits of a frame. Outcomes first: they free what others need."""
        batch = PumpBatch([], [], AckLevel.ASYNC, [])
        size = count = 0
        together, self._together = max(1, self._together), _ALL
        if self._outcomes:
            count, size = self._take_outcomes(batch, together)
            together -= count
        requests = self._requests
        merged: list[Asked] = []
        ack = batch.ack
        while requests and together > 0:
            together -= 1
            request = requests[0]
            single = type(request) is Single
            items = 1 if single else _count(request)
            size += request.bytes
            if count and (count + items > BATCH_ITEMS_MAX or size > BATCH_BYTES_MAX):
                break
            count += items
            if request.ack > ack:
                ack = request.ack
            requests.popleft()
            if single or type(request.command) is Submit:
                merged.append(request)
                continue
            add_submits(batch, merged)
            merged = []
            batch.commands.append(request.command)
            batch.replies.append([request])
        batch.ack = ack
        add_submits(batch, merged)
        if self._doubtful:
            batch.doubtful, self._doubtful = True, bool(requests)
        batch.tick, self.tick = self.tick, False
        return batch

    def _take_outcomes(self, batch: PumpBatch, most: int) -> tuple[int, int]:
        """One command of the outcomes that come first; returns their number and bytes."""
        size = count = 0
        most = min(most, BATCH_ITEMS_MAX)
        waiting, taken = self._outcomes, batch.outcomes
        settlements: list[Settlement] = []
        asked = False
        while waiting and count < most and size <= BATCH_BYTES_MAX:
            outcomes, before = waiting.popleft(), count
            for settlement in outcomes.settlements[: most - count]:
                outcome = settlement.outcome
                size += _ITEM_BYTES + len(settlement.id) + len(settlement.consumer)
                if settlement.log is not None:
                    size += 4 * len(settlement.log)
                if type(outcome) is not Done or outcome.result is not None:
                    size += _outcome_bytes(outcome)
                if count and size > BATCH_BYTES_MAX:
                    break
                count += 1
            if count - before < len(outcomes.settlements):
                outcomes, rest = outcomes.split(count - before)
                waiting.appendleft(rest)
            if outcomes.settlements:
                asked = asked or outcomes.ticket is not None
                taken.append(outcomes)
                settlements += outcomes.settlements
        self._outcome_count -= count
        batch.commands.append(Settle(tuple(settlements)))
        batch.replies.append([*taken] if asked else [])
        # Not awaited, but soon synced: an acknowledged intent is not delivered again.
        batch.ack = AckLevel.BATCH_DEFERRED
        return count, size


def _writable(thing: object) -> bool:
    try:
        return len(encode(thing)) <= FRAME_BYTES_MAX - 1024
    except Exception:
        return False


def _storable(settlement: Settlement) -> Settlement:
    """The settlement, or in place of one that cannot be encoded a failure that can."""
    if _writable(settlement):
        return settlement
    return replace(settlement, outcome=Failed("outcome", "it could not be stored"), log=None)


def _outcome_bytes(outcome: Outcome) -> int:
    match outcome:
        case Done(result):
            return len(result) if result is not None else 0
        case Failed(kind, message) | Rejected(kind, message):
            return 4 * (len(kind) + len(message))
        case Lost(message) | Expired(message) | Returned(message) | Snoozed(_, message):
            return 4 * len(message)
        case _:
            assert_never(outcome)


def _count(request: Asked) -> int:
    command = request.command
    return len(command.items) if type(command) is Submit else 1


def add_submits(batch: PumpBatch, requests: list[Asked]) -> None:
    """One command for all submits that arrived together."""
    if not requests:
        return
    batch.replies.append(requests)
    if len(requests) == 1:
        batch.commands.append(requests[0].command)
        return
    terms: list[Terms] = []
    places: dict[int, int] = {}
    items: list[Item] = []
    for request in requests:
        if type(request) is Single:
            # The same object means the same terms: the engine keeps one object for equal terms.
            number = places.setdefault(id(request.terms), len(terms))
            if number == len(terms):
                terms.append(request.terms)
            item = request.item
            items.append(item if number == item.terms else replace(item, terms=number))
            continue
        command = request.command
        assert type(command) is Submit
        numbers = []
        for each in command.terms:
            number = places.setdefault(id(each), len(terms))
            if number == len(terms):
                terms.append(each)
            numbers.append(number)
        for item in command.items:
            number = numbers[item.terms]
            items.append(item if number == item.terms else replace(item, terms=number))
    batch.commands.append(Submit(tuple(terms), tuple(items)))


def shares(requests: list[Asked], answer: Answer) -> Iterator[tuple[Asked, Answer]]:
    """Each request with its share of the answer to their common command."""
    if requests and type(requests[0]) is OutcomeBatch:
        yield from _shares_of_outcomes(cast("list[OutcomeBatch]", requests), cast("list[bool]", answer))
        return
    if len(requests) == 1 and type(requests[0]) is not Single:
        yield requests[0], answer
        return
    replies, start = cast("list[Reply]", answer), 0
    for request in requests:
        if type(request) is Single:
            yield request, replies[start]
            start += 1
        else:
            end = start + _count(request)
            yield request, replies[start:end]
            start = end


def _shares_of_outcomes(parts: list[OutcomeBatch], counted: list[bool]) -> Iterator[tuple[Asked, Answer]]:
    start = 0
    for part in parts:
        end = start + len(part.settlements)
        yield part, counted[start:end]
        start = end


def item_bytes(item: Item) -> int:
    """An upper bound of a new intent's size on the log. A character takes up to four bytes."""
    size = _ITEM_BYTES + len(item.id) + len(item.payload)
    if item.key is not None:
        size += 4 * len(item.key)
    if item.request is not None:
        size += 4 * len(item.request)
    if item.after:
        size += sum(len(id) + 3 for id in item.after)
    if item.traceparent is not None:
        size += 4 * len(item.traceparent)
    if item.headers is not None:
        size += sum(4 * (len(name) + len(value)) + 6 for name, value in item.headers.items())
    if item.ties is not None:
        size += _ties_bytes(item.ties)
    return size


def _ties_bytes(ties: Ties) -> int:
    size = _TIES_BYTES
    if ties.claim is not None:
        size += 4 * len(ties.claim.key)
    if ties.group is not None:
        size += 4 * len(ties.group)
    if ties.within is not None:
        size += sum(4 * len(lane) + 3 for lane in ties.within)
    return size


def command_bytes(command: Command) -> int:
    """The size of any other command on the log."""
    return len(encode(command))
