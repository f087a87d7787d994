"""What is taken out of a batch and answered without a record, and what must stay in it."""

from __future__ import annotations

import pytest

from duetime.engine.shell.inbox import Asked, Inbox, PendingCommand, PumpBatch
from duetime.engine.shell.known_answers import sift
from duetime.protocol.command import Cancel, Command, FireNow, Submit
from duetime.protocol.intent import Item
from duetime.protocol.terms import AckLevel
from tests.unit.kernel.bench import T0, Bench, terms


def new(id: str, *after: str, at_ms: int = T0 + 60_000) -> Submit:
    return Submit((terms(),), (Item(id, 0, at_ms, after=after),))


def batch_of(*commands: Command) -> PumpBatch:
    """As the inbox makes it of these requests."""
    inbox = Inbox(lambda: None)
    for command in commands:
        inbox.put(PendingCommand(command, AckLevel.ASYNC, lambda answer: None))
    return inbox.take()


def answered(bench: Bench, batch: PumpBatch, now_ms: int = T0) -> list[Asked]:
    return [request for request, _ in sift(bench.state, batch, now_ms)]


def test_known_answers_are_taken_out_of_the_batch():
    bench = Bench()
    bench.submit("there", delay=60_000)
    batch = batch_of(new("there"), new("new"), Cancel("nobody"))
    assert [request.command for request in answered(bench, batch)] == [new("there"), Cancel("nobody")]
    assert batch.commands == [new("new")]


def test_an_intent_may_wait_for_one_of_the_same_batch():
    batch = batch_of(new("a"), new("b", "a"), new("c", "b"), new("d", "nobody"))
    assert [request.command for request in answered(Bench(), batch)] == [new("d", "nobody")]
    (command,) = batch.commands
    assert isinstance(command, Submit)
    assert [item.id for item in command.items] == ["a", "b", "c"]


@pytest.mark.parametrize("verb", [Cancel, FireNow])
def test_an_intent_of_the_same_batch_can_be_named(verb):
    batch = batch_of(new("a"), verb("a"))
    assert not answered(Bench(), batch)
    assert batch.commands == [new("a"), verb("a")]


def test_nothing_is_known_while_the_clock_is_behind_the_newest_record():
    bench = Bench()
    bench.submit("there", delay=60_000)
    earlier_ms = T0 - 3_600_000
    batch = batch_of(new("soon", at_ms=earlier_ms + 1_000), new("there"))
    assert not answered(bench, batch, earlier_ms), "by its own record's time it is not in the past"
