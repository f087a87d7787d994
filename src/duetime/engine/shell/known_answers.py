"""Answers without a record: a request that changes nothing takes no space on the log.

A repeated key, an id that exists, a schedule put again unchanged: each changes nothing, and a client that
repeats such a request for hours must not fill the log. It is answered from the current state, which contains
everything that was answered before. A DURABLE answer waits until everything it depends on is synced.
"""

from __future__ import annotations

from duetime.engine.shell.inbox import Asked, PumpBatch, Single, add_submits
from duetime.kernel import known_answers
from duetime.kernel.state import State
from duetime.protocol.command import Command, Settle, Submit
from duetime.protocol.intent import Item
from duetime.protocol.reply import Answer

Known = list[tuple[Asked, Answer]]


def sift(state: State, batch: PumpBatch, now_ms: int) -> Known:
    """Take requests that need no record out of a batch. Nothing is taken from a batch with commands other
    than new intents and outcomes: a request stays after those that came before it. Nor is anything taken
    while the clock is behind the newest record: then the command's record could have an earlier time than the
    state."""
    if now_ms < state.at_ms:
        return []
    answers: dict[int, Answer] = {}
    for place, command in enumerate(batch.commands):  # before any new intent is looked up
        if type(command) is not Submit and type(command) is not Settle:
            known = known_answers.answer(state, command, now_ms)
            if known is None:
                return []
            answers[place] = known
    found: Known = []
    made: set[str] = set()
    left: list[tuple[Command, list[Asked]]] = []
    for place, (command, requests) in enumerate(zip(batch.commands, batch.replies, strict=True)):
        if type(command) is Submit:
            left.append((command, _unknown(state, requests, now_ms, made, found)))
        elif place not in answers:
            left.append((command, requests))
        elif getattr(command, "id", None) in made:  # tidy: only some commands name an intent
            return []
        else:
            found.append((requests[0], answers[place]))
    if found:  # rarely: combine the remaining requests again
        batch.commands, batch.replies = [], []
        for command, requests in left:
            if type(command) is Submit:
                add_submits(batch, requests)
            else:
                batch.commands.append(command)
                batch.replies.append(requests)
    return found


def _unknown(state: State, requests: list[Asked], now_ms: int, made: set[str], found: Known) -> list[Asked]:
    """The submits that must be written; answers to the others are added to `found`. `made` has the ids of
    earlier submits to be written: a request that names one of them must come after it."""
    unknown: list[Asked] = []
    for request in requests:
        known: Answer
        items: tuple[Item, ...]
        if type(request) is Single:
            items = (request.item,)
            known = known_answers.submitted(state, request.terms, request.item, now_ms)
        else:
            assert type(request.command) is Submit
            items = request.command.items
            known = known_answers.answer(state, request.command, now_ms)
        if known is None or _follows(items, made):
            unknown.append(request)
            made.update(item.id for item in items)
        else:
            found.append((request, known))
    return unknown


def _follows(items: tuple[Item, ...], made: set[str]) -> bool:
    """Whether one of these waits for an intent that the same batch creates."""
    return any(item.after and not made.isdisjoint(item.after) for item in items)
