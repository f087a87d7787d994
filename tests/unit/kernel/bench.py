"""A kernel on the bench: records in, replies and effects out, in few words."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from duetime.kernel.kernel import Applied, Kernel
from duetime.protocol.command import (
    Advance,
    Beat,
    Cancel,
    Command,
    Configure,
    Demand,
    FireNow,
    Leave,
    Patch,
    Revive,
    Settle,
    Start,
    Submit,
)
from duetime.protocol.effect import Abort, Deliver
from duetime.protocol.intent import Intent, Item, Status
from duetime.protocol.outcome import Done, Failed, Outcome, Settlement
from duetime.protocol.record import Record
from duetime.protocol.reply import Refusal, Reply
from duetime.protocol.terms import Entity, Redelivery, Stream, Target, Task, Terms, lane_of
from duetime.store.memory import MemoryStore
from duetime.store.store import Store

# The first moment of every test: the beginning of a minute, and so the end of a slot of every tier.
T0 = 28_333_334 * 60_000

# Waits that can be told in advance.
PLAIN = Redelivery(jitter=False)


def terms(target: Target | None = None, **more: Any) -> Terms:
    """Terms with the lane of their target; a task of the queue `default` if none is given."""
    target = target if target is not None else Task("work")
    more.setdefault("redelivery", PLAIN)
    return Terms(target, lane_of(target), **more)


def entity(name: str = "e1", **more: Any) -> Terms:
    return terms(Entity("cart", name, "add"), **more)


def stream(name: str = "s", **more: Any) -> Terms:
    return terms(Stream(name), **more)


def queue(name: str, **more: Any) -> Terms:
    return terms(Task("work", name), **more)


class Bench:
    """One kernel, its clock in milliseconds after T0, and the commands in short."""

    def __init__(self, store: Store | None = None, **settings: Any) -> None:
        self.store = store if store is not None else MemoryStore(durable=True)
        self.kernel = Kernel(self.store)
        self.state = self.kernel.state
        self.ms = 0
        self.watched = True
        if settings:
            self.configure(**settings)

    # Records.

    def do(self, command: Command) -> Applied:
        """Apply one command now."""
        record = Record(self.state.records + 1, T0 + self.ms, command)
        return self.kernel.apply(record, watched=self.watched)

    def at(self, ms: int) -> Applied:
        """Let time be so many milliseconds after T0."""
        self.ms = ms
        return self.do(Advance())

    def later(self, ms: int) -> Applied:
        return self.at(self.ms + ms)

    def submit(self, *ids: str, on: Terms | None = None, **item: Any) -> Applied:
        """One intent for each id, all alike. `delay` counts from now, `deadline` from now too."""
        items = tuple(self.item(id, **item) for id in ids)
        return self.do(Submit((on if on is not None else terms(),), items))

    def item(self, id: str, delay: int = 0, deadline: int | None = None, **more: Any) -> Item:
        now = T0 + self.ms
        made = Item(id, 0, now + delay, **more)
        return made if deadline is None else replace(made, deadline_ms=now + deadline)

    def settle(self, id: str, outcome: Outcome, delivery: int | None = None) -> Applied:
        """An outcome of the delivery that is out, or of another one."""
        intent = self.intent(id)
        number = intent.delivery if delivery is None else delivery
        return self.do(Settle((Settlement(id, number, outcome, consumer=intent.consumer),)))

    def done(self, id: str, result: bytes | None = None) -> Applied:
        return self.settle(id, Done(result))

    def fail(self, id: str, kind: str = "error", message: str = "no", **more: Any) -> Applied:
        return self.settle(id, Failed(kind, message, **more))

    def cancel(self, id: str, revision: int = 0) -> Applied:
        return self.do(Cancel(id, revision))

    def fire(self, id: str, revision: int = 0) -> Applied:
        return self.do(FireNow(id, revision))

    def patch(self, id: str, **changes: Any) -> Applied:
        return self.do(Patch(id, **changes))

    def revive(self, id: str, **changes: Any) -> Applied:
        return self.do(Revive(id, **changes))

    def demand(self, consumer: str, lane: str, credits: int = 1, *, standing: bool = True) -> Applied:
        return self.do(Demand(consumer, lane, credits, standing))

    def beat(self, consumer: str) -> Applied:
        return self.do(Beat(consumer))

    def leave(self, consumer: str) -> Applied:
        return self.do(Leave(consumer))

    def start(self) -> Applied:
        return self.do(Start(self.state.epoch + 1))

    def configure(self, **settings: Any) -> Applied:
        return self.do(Configure(replace(self.state.settings, **settings)))

    # What is there.

    def intent(self, id: str) -> Intent:
        intent = self.store.get(id)
        assert intent is not None, f"{id!r} is not there"
        return intent

    def status(self, id: str) -> Status:
        return self.intent(id).status

    def statuses(self, *ids: str) -> list[str]:
        return [self.status(id).name for id in ids]

    def next(self) -> int | None:
        """When the kernel wants time to pass next, after T0."""
        next_ms = self.kernel.next_ms()
        return None if next_ms is None else next_ms - T0

    # Another life.

    def save(self, position: int = 1) -> None:
        """Write a whole checkpoint."""
        for job in self.store.checkpoint(self.kernel.checkpoint(position)):
            job()

    def thawed(self) -> Bench:
        """A second bench that begins where this one's last checkpoint was (memory only)."""
        assert isinstance(self.store, MemoryStore)
        return thawed(self.store.reopen(), self.ms)


def thawed(store: Store, ms: int) -> Bench:
    """A bench over what a store has on disk."""
    bench = Bench(store)
    checkpoint = store.load()
    assert checkpoint is not None
    bench.kernel.thaw(checkpoint)
    bench.ms = ms
    return bench


def deliveries(applied: Applied) -> list[Deliver]:
    return [effect for effect in applied.effects if isinstance(effect, Deliver)]


def delivered(applied: Applied) -> list[str]:
    """The ids handed out, in order."""
    return [deliver.id for deliver in deliveries(applied)]


def aborted(applied: Applied) -> list[tuple[str, int]]:
    return [(effect.id, effect.delivery) for effect in applied.effects if isinstance(effect, Abort)]


def replies(applied: Applied) -> list[Reply]:
    answer = applied.answer
    assert isinstance(answer, list)
    return answer  # type: ignore[return-value]


def errors(applied: Applied) -> list[str]:
    """The name of each item's reason for a refusal; empty for accepted items."""
    return [reply.reason.value if isinstance(reply, Refusal) else "" for reply in replies(applied)]


def error(applied: Applied) -> str:
    """The name of the reason why a command was refused; empty if it was not."""
    return applied.answer.reason.value if isinstance(applied.answer, Refusal) else ""
