"""All operations on intents, independent of the transport. HTTP and gRPC both use them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from duetime.api.access.auth import check_target, is_bound, own_lanes
from duetime.api.access.quotas import Paid, Quotas, unlimited
from duetime.api.codec.intent_decoder import Composer, Defaults, said_terms
from duetime.api.codec.intent_encoder import IntentEncoder
from duetime.api.functions.registry import Check, FunctionRegistry
from duetime.api.http import problems
from duetime.engine.bulk import Many
from duetime.engine.engine import Engine
from duetime.engine.reads.library import Library, ViewPage
from duetime.errors import DuetimeError, NoSuchIntent, NotReady
from duetime.protocol.command import Cancel, FireNow, Patch, Revive
from duetime.protocol.filter import Filter
from duetime.protocol.intent import Intent, Item
from duetime.protocol.reply import Existing
from duetime.protocol.terms import Terms
from duetime.protocol.view import View, view_of
from duetime.refusals import Submitted
from duetime.timefmt import iso_or_none
from duetime.wire import views
from duetime.wire.history import History, Why
from duetime.wire.intent import Batch, Created, NewIntent, PatchIntent, ReviveIntent
from duetime.wire.names import camel
from duetime.wire.progress import Logs
from duetime.wire.shapes import written

# Intents of a batch that are processed before other tasks get a turn: some milliseconds of work.
_TURN = 1_000


class Begun(Struct):
    """A submitted intent that waits for its reply."""

    reply: asyncio.Future[Submitted]
    paid: Paid | None
    token: str = ""
    """Whose it is."""


class Service:
    """The operations on intents. `engine` is set when recovery is done."""

    def __init__(self, defaults: Defaults, library: Library, quotas: Quotas | None = None) -> None:
        self.engine: Engine | None = None
        self.library = library
        self.composer = Composer(defaults, self._priority_of)
        self.show = IntentEncoder(lambda: 0 if self.engine is None else self.engine.now_ms())
        self.functions = FunctionRegistry()
        self.quotas = quotas if quotas is not None else Quotas(unlimited)
        self.refused = problems.nobody_counts
        """Called for every refused intent of a batch. Refused requests are counted by the transport."""

    @property
    def running(self) -> Engine:
        """The engine. Raises `NotReady` during recovery."""
        if self.engine is None:
            raise NotReady("The engine is still recovering.", waitMs=500)
        return self.engine

    @property
    def many(self) -> Many:
        """Operations on many intents."""
        return Many(self.running, self.library)

    # One intent.

    async def create(self, new: NewIntent, request: str | None = None) -> tuple[Intent, bool]:
        """Create an intent, or find that of its key or request id. Returns it, and whether it existed."""
        begun = self.begin(new, request)
        with contextlib.suppress(DuetimeError):  # raised by `end`
            await begun.reply
        return self.end(begun)

    def begin(self, new: NewIntent, request: str | None = None) -> Begun:
        """Submit a new intent. The reply comes later."""
        engine = self.running
        terms = self.composer.terms(new)
        item = self.composer.item(new, 0, engine.now_ms(), request)
        self.functions.check_item(terms.target, item)
        paid = self.quotas.take(1)
        try:
            return Begun(engine.submit_one(terms, item, terms.ack), paid)
        except DuetimeError:
            if paid is not None:
                paid.keep(0)
            raise

    def end(self, begun: Begun) -> tuple[Intent, bool]:
        """The result after the reply: the intent, and whether it existed."""
        known = True
        try:
            intent, known = made_of(begun.reply.result())
        finally:
            if begun.paid is not None and known:
                begun.paid.keep(0)
        return intent, known

    async def get(self, id: str) -> View:
        """An intent now; during recovery, at the last checkpoint."""
        recovering = self.engine is None
        view = await self.library.get(id)
        if view is None and recovering:
            view = self.running.reads.get(id)  # it may be on the log but not in the checkpoint: unknown yet
        if view is None:
            raise no_such(id)
        return view

    async def page(self, filter: Filter, order: str, cursor: str | None, limit: int) -> ViewPage:
        """A page of the matching intents, in a stable order."""
        return await self.library.page(filter, order, cursor, limit)

    def history(self, id: str) -> History:
        entries = self.running.reads.history(id)
        if entries is None:
            raise no_such(id)
        return History(intent_id=id, entries=[views.entry(each, written) for each in entries])

    def logs(self, id: str) -> Logs:
        """The log lines of the newest attempt."""
        if self.running.reads.intent(id) is None:
            raise no_such(id)
        return Logs(intent_id=id, lines=(self.running.reads.log(id) or "").splitlines())

    def why(self, id: str) -> Why:
        engine = self.running
        intent, why = engine.reads.intent(id), engine.reads.why(id)
        if intent is None or why is None:
            raise no_such(id)
        return Why(
            intent_id=id,
            status=views.STATUSES[intent.status],
            code=why.code,
            sentence=why.sentence,
            data=dict(_shown(name, value) for name, value in why.data.items()),
        )

    async def patch(self, id: str, patch: PatchIntent, revision: int = 0, request: str | None = None) -> View:
        command = self.composer.patch(id, patch, revision, request)
        self._check_payload(id, command.payload)
        return await self._ask(command)

    async def cancel(
        self, id: str, revision: int = 0, request: str | None = None, tree: bool = False
    ) -> View:
        return await self._ask(Cancel(id, revision, request, tree, own_lanes()))

    async def fire_now(self, id: str, revision: int = 0, request: str | None = None) -> View:
        return await self._ask(FireNow(id, revision, request))

    async def revive(
        self, id: str, revive: ReviveIntent, revision: int = 0, request: str | None = None
    ) -> View:
        command = self.composer.revive(id, revive, revision, request)
        if command.target is None:
            self._check_payload(id, command.payload)
        return await self._ask(command)

    # Batches.

    async def create_many(
        self,
        news: Sequence[NewIntent | DuetimeError],
        request: str | None = None,
        show: Callable[[Intent], object] | None = None,
    ) -> Batch:
        """Submit all intents in one append. Returns a result or an error for each, in order."""
        engine = self.running
        now_ms = engine.now_ms()
        terms: list[Terms] = []
        places: dict[int, int] = {}
        items: list[Item] = []
        results: list[DuetimeError | int] = []
        composer, place = self.composer, 0
        said: object = None
        its_terms: Terms | None = None
        check: Check | None = None
        for number, new in enumerate(news):
            if number % _TURN == 0 and number:
                await asyncio.sleep(0)  # tidy: let others have their turn
            if isinstance(new, DuetimeError):
                results.append(new)
                continue
            try:
                words = said_terms(new)
                if words != said:  # most have the same values as the one before
                    its_terms = composer.terms(new)
                    check = self.functions.checker(its_terms.target)
                    place, said = places.get(id(its_terms), len(terms)), words
                item = composer.item(new, place, now_ms, None if request is None else f"{request}\n{number}")
                if check is not None and (item.ties is None or not item.ties.first):
                    check(item.payload)
            except DuetimeError as error:
                results.append(error)
                continue
            if place == len(terms):
                assert its_terms is not None
                places[id(its_terms)] = place
                terms.append(its_terms)
            results.append(len(items))
            items.append(item)
        replies = await self.submit(terms, items) if items else []
        return await self._batch(results, replies, show if show is not None else self.view_of)

    async def submit(self, terms: Sequence[Terms], items: Sequence[Item]) -> list[Submitted]:
        """Submit new intents together, within the rate of the caller. Returns a reply for each."""
        paid = self.quotas.take(len(items))
        ack = max(each.ack for each in terms)
        replies: list[Submitted] = []
        try:
            replies = await self.running.submit(tuple(terms), tuple(items), ack)
        finally:
            if paid is not None:
                paid.keep(sum(type(reply) is Intent for reply in replies))
        return replies

    async def _batch(
        self, results: list[DuetimeError | int], replies: list[Submitted], show: Callable[[Intent], Any]
    ) -> Batch:
        answers: list[Created] = []
        created = existing = failed = 0
        for number, result in enumerate(results):
            if number % _TURN == 0 and number:
                await asyncio.sleep(0)  # tidy: let others have their turn
            if type(result) is int and type(reply := replies[result]) is Intent:  # the usual case
                created += 1
                answers.append(Created(status=201, intent=show(reply)))
                continue
            try:
                if isinstance(result, DuetimeError):
                    raise result
                intent, _ = made_of(replies[result])
            except DuetimeError as error:
                failed += 1
                self.refused(error)
                answers.append(Created(status=error.status, error=problems.problem(error)))
                continue
            existing += 1
            answers.append(Created(status=200, intent=show(intent)))
        return Batch(items=answers, created=created, existing=existing, failed=failed)

    # Parts.

    def _check_payload(self, id: str, payload: bytes | None) -> None:
        """Check a changed payload against its function."""
        intent = None if payload is None else self.running.reads.intent(id)
        ties = intent.rare.ties if intent is not None and intent.rare is not None else None
        if intent is not None and payload is not None and (ties is None or not ties.first):
            self.functions.check(intent.terms.target, payload)

    def _priority_of(self, lane: str) -> int:
        settings = self.running.reads.settled_lanes().get(lane)
        return 0 if settings is None else settings.priority

    def view_of(self, intent: Intent) -> View:
        """The current state of an intent."""
        return view_of(intent, self.running.now_ms())

    async def _ask(self, command: Patch | Cancel | FireNow | Revive) -> View:
        if is_bound():
            intent = self.running.reads.intent(command.id)
            if intent is None:
                raise no_such(command.id)
            check_target(intent.terms.target)
            if type(command) is Revive and command.target is not None:
                check_target(command.target)
        view: View = await self.running.ask(command)
        return view


def made_of(submitted: Submitted) -> tuple[Intent, bool]:
    """The intent that a submit created or found, and whether it existed. An error is raised."""
    if isinstance(submitted, Intent):
        return submitted, False
    if isinstance(submitted, Existing):
        return submitted.intent, True
    raise submitted


def no_such(id: str) -> NoSuchIntent:
    return NoSuchIntent(f"There is no intent with the id {id[:128]!r}.")


def _shown(name: str, value: object) -> tuple[str, object]:
    """A fact of the kernel for JSON: times as text, durations with the unit in the name."""
    if not name.endswith("_at_ms"):
        return camel(name), value
    return camel(name.removesuffix("_ms")), iso_or_none(value) if isinstance(value, int) else value
