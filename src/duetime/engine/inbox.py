"""Everything from outside, in order, until the pump takes it. Owns what waits to be written.

Single submits that come together become one command, and so do outcomes: one record, one apply loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from duetime.kernel.kernel import Answer
from duetime.limits import BATCH_BYTES_MAX, BATCH_ITEMS_MAX, FRAME_BYTES_MAX
from duetime.protocol.command import Advance, Command, Settle, Submit
from duetime.protocol.intent import Item
from duetime.protocol.outcome import Done, Failed, Lost, Outcome, Rejected, Settlement, Snoozed
from duetime.protocol.record import encode
from duetime.protocol.terms import AckLevel, Terms

# What an item costs on the log besides its payload, roughly.
_ITEM_BYTES = 96


class Request(Struct, eq=False):
    """A command, and who waits for its answer. `reply` is called once: with an answer or an error."""

    command: Command
    ack: AckLevel
    reply: Callable[[Answer | Exception], None]
    bytes: int = 128


class Batch(Struct):
    """What the pump writes as one frame."""

    commands: list[Command]
    replies: list[list[tuple[Request, int, int]]]
    """For each command, the requests it answers, with their part of the answer (from, to)."""
    ack: AckLevel
    settlements: list[Settlement]
    """Outcomes in this batch: they must not be lost when it cannot be written."""


class Inbox:
    """A queue that forms batches."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._requests: deque[Request] = deque()
        self.settlements: list[Settlement] = []
        self.tick = False

    def __len__(self) -> int:
        return len(self._requests) + len(self.settlements) + self.tick

    def put(self, request: Request) -> None:
        self._requests.append(request)
        self._wake()

    def settle(self, settlements: list[Settlement]) -> None:
        self.settlements += settlements
        self._wake()

    def time(self) -> None:
        """Time has come for something."""
        self.tick = True
        self._wake()

    def refuse_all(self) -> list[Request]:
        """Empty it: everybody who waits is returned, to be told why."""
        waiting = list(self._requests)
        self._requests.clear()
        self.settlements.clear()
        return waiting

    def sort_out(self, batch: Batch, error: Exception) -> None:
        """A batch could not be made into bytes: who is guilty is told so, the rest is taken again."""
        requests = [request for answered in batch.replies for request, _, _ in answered]
        innocent = [request for request in requests if _writable(request.command)]
        if len(innocent) == len(requests) and all(map(_writable, batch.settlements)):
            innocent = []  # nobody alone: to take them together again would not end
        for request in requests:
            if request not in innocent:
                request.reply(error)
        self._requests.extendleft(reversed(innocent))
        self.settlements[:0] = [
            settlement
            if _writable(settlement)
            else Settlement(settlement.id, settlement.delivery, Failed("outcome", "it could not be stored"))
            for settlement in batch.settlements
        ]

    def take(self) -> Batch:
        """The next batch, within the limits of a frame. Outcomes first: they free what others need."""
        batch = Batch([], [], AckLevel.ASYNC, [])
        size = count = 0
        if self.settlements:
            count, size = self._take_settlements(batch)
        requests = self._requests
        merged: list[Request] = []
        while requests:
            request = requests[0]
            command = request.command
            items = len(command.items) if type(command) is Submit else 1
            if count and (count + items > BATCH_ITEMS_MAX or size + request.bytes > BATCH_BYTES_MAX):
                break
            requests.popleft()
            count += items
            size += request.bytes
            if request.ack > batch.ack:
                batch.ack = request.ack
            if type(command) is Submit:
                merged.append(request)
                continue
            _add_submits(batch, merged)
            merged = []
            batch.commands.append(command)
            batch.replies.append([(request, 0, 0)])
        _add_submits(batch, merged)
        if self.tick and not batch.commands:
            batch.commands.append(Advance())
            batch.replies.append([])
        self.tick = False
        return batch

    def _take_settlements(self, batch: Batch) -> tuple[int, int]:
        size = count = 0
        for settlement in self.settlements[:BATCH_ITEMS_MAX]:
            outcome = settlement.outcome
            size += _ITEM_BYTES + len(settlement.id)
            if type(outcome) is not Done or outcome.result is not None:
                size += _outcome_bytes(outcome)
            if count and size > BATCH_BYTES_MAX:
                break
            count += 1
        batch.settlements = self.settlements[:count]
        del self.settlements[:count]
        batch.commands.append(Settle(tuple(batch.settlements)))
        batch.replies.append([])
        # Not waited for, but soon on the medium: what is acknowledged is not delivered again.
        batch.ack = AckLevel.BATCH_DEFERRED
        return count, size


def _writable(thing: object) -> bool:
    try:
        return len(encode(thing)) <= FRAME_BYTES_MAX - 1024
    except Exception:
        return False


def _outcome_bytes(outcome: Outcome) -> int:
    match outcome:
        case Done(result):
            return len(result) if result is not None else 0
        case Failed(kind, message) | Rejected(kind, message):
            return 4 * (len(kind) + len(message))
        case Lost(message):
            return 4 * len(message)
        case Snoozed():
            return 0


def _add_submits(batch: Batch, requests: list[Request]) -> None:
    """One command out of all submits that came together."""
    if not requests:
        return
    if len(requests) == 1:
        command = requests[0].command
        assert type(command) is Submit
        batch.commands.append(command)
        batch.replies.append([(requests[0], 0, len(command.items))])
        return
    terms: list[Terms] = []
    places: dict[int, int] = {}
    items: list[Item] = []
    replies: list[tuple[Request, int, int]] = []
    for request in requests:
        command = request.command
        assert type(command) is Submit
        start = len(items)
        # The same object means the same terms: a task's terms are made once.
        numbers = []
        for each in command.terms:
            number = places.setdefault(id(each), len(terms))
            if number == len(terms):
                terms.append(each)
            numbers.append(number)
        for item in command.items:
            number = numbers[item.terms]
            items.append(item if number == item.terms else replace(item, terms=number))
        replies.append((request, start, len(items)))
    batch.commands.append(Submit(tuple(terms), tuple(items)))
    batch.replies.append(replies)


def terms_bytes(terms: tuple[Terms, ...]) -> int:
    """How many bytes these terms take on the log."""
    return len(encode(terms))


def item_bytes(item: Item) -> int:
    """How many bytes a new intent takes on the log, at the most."""
    size = _ITEM_BYTES + len(item.id) + len(item.payload)
    if item.key is not None:
        size += 4 * len(item.key)
    if item.after:
        size += sum(len(id) + 3 for id in item.after)
    if item.traceparent is not None:
        size += 4 * len(item.traceparent)
    return size


def command_bytes(command: Command) -> int:
    """How many bytes any other command takes on the log."""
    return len(encode(command))
