"""The inbox makes one command of all submits that come together, and each caller gets its own share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from duetime.engine.admission.catalog import Catalog
from duetime.engine.shell.inbox import Inbox, PendingCommand, Single, item_bytes, shares
from duetime.errors import NoSpace, TooLarge
from duetime.limits import BATCH_BYTES_MAX, FRAME_BYTES_MAX, TERMS_KEPT
from duetime.protocol.command import Pause, Settle, Submit
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
from duetime.protocol.reply import Reason, Refusal, Reply
from duetime.protocol.terms import AckLevel, Claim, OnDuplicate, Task, Terms, Until

MAIL, BILL = Terms(Task("mail"), "task:default"), Terms(Task("bill"), "task:default")


@pytest.fixture
def single() -> Iterator[Callable[..., Single]]:
    loop = asyncio.new_event_loop()

    def make(terms: Terms, id: str, ack: AckLevel = AckLevel.ASYNC) -> Single:
        return Single(terms, Item(id, 0, 1), ack, loop.create_future(), 100)

    yield make
    loop.close()


def nobody(answer: object) -> None: ...


def test_submits_of_one_batch_are_one_command_with_each_terms_once(single: Callable[..., Single]) -> None:
    inbox = Inbox(lambda: None)
    two = PendingCommand(Submit((BILL,), (Item("b", 0, 1), Item("c", 0, 1))), AckLevel.ASYNC, nobody)
    for request in (single(MAIL, "a"), two, single(BILL, "d", AckLevel.DURABLE), single(MAIL, "e")):
        inbox.put(request)
    batch = inbox.take()
    (command,) = batch.commands
    assert isinstance(command, Submit)
    assert command.terms == (MAIL, BILL)
    assert [(item.id, item.terms) for item in command.items] == [
        ("a", 0),
        ("b", 1),
        ("c", 1),
        ("d", 1),
        ("e", 0),
    ]
    assert batch.ack is AckLevel.DURABLE, "a batch is as durable as its most demanding request"


def test_each_caller_gets_its_own_share(single: Callable[..., Single]) -> None:
    first, last = single(MAIL, "a"), single(MAIL, "d")
    two = PendingCommand(Submit((MAIL,), (Item("b", 0, 1), Item("c", 0, 1))), AckLevel.ASYNC, nobody)
    replies: list[Reply] = [Refusal(Reason.BUSY, id) for id in "abcd"]
    assert list(shares([first, two, last], replies)) == [
        (first, replies[0]),
        (two, replies[1:3]),
        (last, replies[3]),
    ]
    assert list(shares([first], replies[:1])) == [(first, replies[0])]
    assert list(shares([two], replies[1:3])) == [(two, replies[1:3])]


def test_another_command_keeps_its_place_between_submits(single: Callable[..., Single]) -> None:
    inbox = Inbox(lambda: None)
    pause = PendingCommand(Pause("task:default"), AckLevel.ASYNC, nobody)
    before, after = single(MAIL, "a"), single(MAIL, "b")
    for request in (before, pause, after):
        inbox.put(request)
    batch = inbox.take()
    assert [type(command) for command in batch.commands] == [Submit, Pause, Submit]
    assert batch.replies == [[before], [pause], [after]]
    assert list(shares([pause], None)) == [(pause, None)]


def test_a_caller_that_went_away_is_not_answered(single: Callable[..., Single]) -> None:
    gone, there = single(MAIL, "a"), single(MAIL, "b")
    gone.future.cancel()
    for request in (gone, there):
        request.reply(TooLarge("no"))
    assert gone.future.cancelled()
    assert isinstance(there.future.exception(), TooLarge)


def test_equal_terms_are_one_object() -> None:
    catalog = Catalog()
    known = catalog.find(MAIL)
    assert known.terms is MAIL
    assert catalog.find(Terms(Task("mail"), "task:default")) is known
    assert catalog.find(BILL) is not known


def test_the_catalog_does_not_grow_without_end() -> None:
    catalog = Catalog()
    first = catalog.find(MAIL)
    for number in range(TERMS_KEPT):
        catalog.find(Terms(Task(f"t{number}"), "task:default"))
    again = catalog.find(MAIL)
    assert again is not first and again.terms == first.terms, "the first one was dropped"


WIDE = "\U0001f600"


@pytest.mark.parametrize(
    "item",
    [
        Item("a" * 128, 0, 1 << 43),
        Item("a", 0, 1, b"x" * 1_000, 1 << 43, WIDE * 256, 1 << 63, OnDuplicate.REJECT),
        Item("a", 0, 1, request=f"{WIDE * 256}\n9999"),
        Item("a", 0, 1, after=tuple("b" * 128 for _ in range(1_000))),
        Item("a", 0, 1, traceparent=WIDE * 55),
        Item("a", 0, 1, ties=Ties(Claim(WIDE * 256, Until.TIME, 1 << 40), WIDE * 128, 100_000)),
        Item("a", 0, 1, headers={WIDE * 100: WIDE * 1_000, "b": ""}),
        Item("a", 0, 1, ties=Ties(Claim(WIDE * 256, Until.TIME, 1 << 40))),
        Item("a", 0, 1, ties=Ties(group="g", within=tuple(f"task:{WIDE * 256}{n}" for n in range(100)))),
        Item(
            "a" * 128, 0, 1 << 43, b"", 1 << 43, "k", 1 << 63, fresh=True, relative=True, expected_ms=1 << 30
        ),
    ],
)
def test_an_item_is_never_larger_on_the_log_than_it_is_counted(item: Item) -> None:
    assert len(encode(item)) <= item_bytes(item)


def test_submits_too_large_for_one_batch_are_written_separately(single: Callable[..., Single]) -> None:
    """Nobody is refused for the size of others."""
    inbox = Inbox(lambda: None)
    requests = [single(MAIL, f"i{number}") for number in range(5)]
    for request in requests:
        inbox.put(request)
    taken: list[int] = []
    for too_large in (True, True, False, False):
        batch = inbox.take()
        (command,) = batch.commands
        assert isinstance(command, Submit)
        if too_large:
            assert inbox.sort_out(batch) == []
        else:
            taken.append(len(command.items))
    assert taken == [1, 4]
    assert not any(request.future.done() for request in requests)


def test_a_single_request_that_is_too_large_is_refused(single: Callable[..., Single]) -> None:
    inbox = Inbox(lambda: None)
    alone = single(MAIL, "a")
    inbox.put(alone)
    assert inbox.sort_out(inbox.take()) == [alone]
    assert not len(inbox)


def test_outcomes_with_long_logs_are_taken_in_parts() -> None:
    inbox = Inbox(lambda: None)
    inbox.settle([Settlement(f"i{number}", 1, Done(), "x" * 16_384) for number in range(100)])
    batch = inbox.take()
    (outcomes,) = batch.outcomes
    assert 1 <= len(outcomes.settlements) < 10
    assert inbox.sort_out(batch) == []
    assert len(inbox.take().outcomes[0].settlements) == len(outcomes.settlements) // 2


def outcomes(*ids: str) -> list[Settlement]:
    return [Settlement(id, 1, Done()) for id in ids]


def test_outcomes_that_come_together_are_one_command_and_each_caller_gets_its_share() -> None:
    inbox, told = Inbox(lambda: None), list[object]()
    inbox.settle(outcomes("a"))
    inbox.settle(outcomes("b", "c"), told.append)
    inbox.settle(outcomes("d"))
    assert len(inbox) == 4
    batch = inbox.take()
    assert batch.commands == [Settle(tuple(outcomes("a", "b", "c", "d")))]
    assert not len(inbox)
    for request, answer in shares(batch.replies[0], [True, True, False, True]):
        request.reply(answer)
    assert told == [[True, False]]


def test_outcomes_without_a_caller_have_no_reply() -> None:
    inbox = Inbox(lambda: None)
    inbox.settle(outcomes("a"))
    inbox.settle(outcomes("b"))
    batch = inbox.take()
    assert batch.commands == [Settle(tuple(outcomes("a", "b")))]
    assert batch.replies == [[]]


def test_no_outcomes_are_nothing_to_write() -> None:
    inbox, told = Inbox(lambda: None), list[object]()
    inbox.settle([])
    inbox.settle([], told.append)
    assert told == [[]]
    assert not len(inbox) and not inbox.take().commands


def test_outcomes_over_several_batches_are_answered_once(monkeypatch) -> None:
    monkeypatch.setattr("duetime.engine.shell.inbox.BATCH_ITEMS_MAX", 2)
    inbox, told = Inbox(lambda: None), list[object]()
    inbox.settle(outcomes("a", "b", "c"), told.append)
    for answer in ([True, False], [True]):
        batch = inbox.take()
        assert told == []
        for request, part in shares(batch.replies[0], answer):
            request.reply(part)
    assert told == [[True, False, True]]


def test_outcomes_that_cannot_be_written_are_kept_and_reported_once(monkeypatch) -> None:
    monkeypatch.setattr("duetime.engine.shell.inbox.BATCH_ITEMS_MAX", 2)
    inbox, told, error = Inbox(lambda: None), list[object](), NoSpace("full")
    given = outcomes("a", "b", "c")
    inbox.settle(given, told.append)
    batch = inbox.take()
    for request in batch.requests():
        request.reply(error)
    inbox.put_back(batch)
    inbox.settle(outcomes("d"))
    assert given == outcomes("a", "b", "c"), "the list of the caller is its own"
    assert inbox.take().commands == [Settle(tuple(outcomes("a", "b")))]
    batch = inbox.take()
    assert batch.commands == [Settle(tuple(outcomes("c", "d")))]
    for request, part in shares(batch.replies[0], [True, True]):
        request.reply(part)
    assert told == [error]


def test_an_outcome_that_cannot_be_encoded_becomes_a_failure_and_its_caller_is_answered() -> None:
    inbox, told = Inbox(lambda: None), list[object]()
    inbox.settle([Settlement("a", 1, Done(b"x" * FRAME_BYTES_MAX))], told.append)
    assert inbox.sort_out(inbox.take()) == []
    batch = inbox.take()
    (command,) = batch.commands
    assert isinstance(command, Settle) and type(command.settlements[0].outcome) is Failed
    for request, part in shares(batch.replies[0], [True]):
        request.reply(part)
    assert told == [[True]]


def test_only_a_request_that_may_repeat_an_earlier_one_makes_a_batch_doubtful(
    single: Callable[..., Single],
) -> None:
    inbox = Inbox(lambda: None)
    new = single(MAIL, "a")
    new.item = Item("a", 0, 1, fresh=True)
    inbox.put(new)
    assert not inbox.take().doubtful
    inbox.put(single(MAIL, "b"))
    assert inbox.take().doubtful


def test_terms_that_stand_twice_in_a_submit_are_written_once(single: Callable[..., Single]) -> None:
    inbox = Inbox(lambda: None)
    twice = Submit((BILL, BILL), (Item("a", 0, 1), Item("b", 1, 1)))
    inbox.put(single(MAIL, "c"))
    inbox.put(PendingCommand(twice, AckLevel.ASYNC, nobody))
    (command,) = inbox.take().commands
    assert isinstance(command, Submit) and command.terms == (MAIL, BILL)
    assert [(item.id, item.terms) for item in command.items] == [("c", 0), ("a", 1), ("b", 1)]


def test_a_batch_ends_before_the_request_that_would_not_fit(single: Callable[..., Single]) -> None:
    inbox = Inbox(lambda: None)
    requests = [single(MAIL, id) for id in "abc"]
    for request in requests:
        request.bytes = BATCH_BYTES_MAX // 2
        inbox.put(request)
    assert [inbox.take().replies, inbox.take().replies] == [[requests[:2]], [requests[2:]]]


def test_outcomes_of_the_next_caller_wait_if_they_would_not_fit() -> None:
    inbox, told = Inbox(lambda: None), list[object]()
    large = Done(b"x" * (BATCH_BYTES_MAX - 1_000))
    inbox.settle([Settlement("a", 1, large)])
    inbox.settle([Settlement("b", 1, large)], told.append)
    first, second = inbox.take(), inbox.take()
    assert [len(batch.outcomes) for batch in (first, second)] == [1, 1]
    assert first.replies == [[]] and second.replies == [second.outcomes]
    assert not len(inbox)


@pytest.mark.parametrize(
    "outcome",
    [
        Done(b"x" * 1_000),
        Failed("k" * 64, WIDE * 2_000),
        Rejected("k" * 64, WIDE * 2_000),
        Lost(WIDE * 2_000),
        Expired(WIDE * 2_000),
        Returned(WIDE * 2_000),
        Snoozed(1 << 40, WIDE * 2_000),
    ],
)
def test_the_outcomes_of_one_batch_fit_a_frame(outcome: Outcome) -> None:
    inbox = Inbox(lambda: None)
    given = [Settlement(f"i{number}", 1 << 40, outcome) for number in range(1_000)]
    inbox.settle(list(given))
    batch = inbox.take()
    (command,) = batch.commands
    assert isinstance(command, Settle) and 1 < len(command.settlements) < 1_000
    assert len(encode(command)) <= BATCH_BYTES_MAX
    assert command == batch.outcomes[0].command, "alone, they would be the same command"
    assert batch.ack is batch.outcomes[0].ack


def test_a_request_that_cannot_be_encoded_is_refused_alone(single: Callable[..., Single]) -> None:
    inbox = Inbox(lambda: None)
    good, bad = single(MAIL, "a"), single(MAIL, "\ud800")
    for request in (good, bad):
        inbox.put(request)
    assert inbox.sort_out(inbox.take()) == [bad]
    assert inbox.take().replies == [[good]]
