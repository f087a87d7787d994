"""The `Store` protocol: where intents are kept between records. Synchronous: the kernel calls it directly.

An implementation is one class. Its users see only the part they need: `KernelStore`, `CheckpointStore` or
`ReadStore`; `Store` is all three.

A store shows one coherent state, regardless of what it holds in memory and what on disk. The kernel's
decisions must be the same on every store, so no answer of `KernelStore` depends on what is in memory.

- `get`, `by_key` and `by_claim` return the one live object of an intent: while it is in memory, always the
  same object, changed in place by the kernel. A forgotten intent (see `forgotten`) is not returned.
- `add` takes a new intent. `touch` is called *before* an intent is changed: a store that is writing a
  checkpoint first saves the intent as it was at the checkpoint's position. Both write the store's `cycle`,
  which every checkpoint raises, into the intent; while the two are equal, it need not be touched again.
- `window` loads the intents that wake next into memory, in order of (wake, seq), and moves the edge:
  everything that wakes at or before the edge is in memory from then on. `edge` is that place.
- `checkpoint` makes the state up to now durable in one transaction. It is a generator: each step does
  a little work in the caller's thread and yields a job that may run in another one, so a large
  checkpoint never stops the loop. Jobs run one at a time, in order; the next step may be taken before
  they are done, except after `settled`, which requires all of them to be done. When the generator is
  exhausted, the checkpoint is on stable storage. If it is abandoned, the earlier checkpoint still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from duetime.protocol.checkpoint import Checkpoint, Marks
from duetime.protocol.intent import DEAD_LETTERED, DISPATCHING, DUE, FINAL, PURGED_MS, Intent, Status
from duetime.protocol.terms import Until

if TYPE_CHECKING:
    from duetime.store.archive import Archive

Edge = tuple[int, int]
Job = Callable[[], None]

# Above every intent of its millisecond.
SEQ_MAX = 1 << 62

# Intents with one of these statuses are always in memory: they wait in a lane or are in flight.
HOT = frozenset({DUE, DISPATCHING})


def pause() -> None:
    """A job with nothing to do: it only lets the loop run."""


def settled() -> None:
    """A job with nothing to do: the next step is taken when all earlier jobs are done."""


class KernelStore(Protocol):
    """The queries of the kernel: intents by id, by key, by claim, by wake time. Everything it decides depends
    on these answers, so they are the same on every store."""

    edge: Edge
    cycle: int

    def get(self, id: str) -> Intent | None:
        """The intent with this id."""

    def by_key(self, key: str) -> Intent | None:
        """The newest intent with this idempotency key that is not forgotten."""

    def by_claim(self, name: str) -> Intent | None:
        """The newest intent that holds a claim of this name (see `claim_of`) and is not forgotten."""

    def add(self, intent: Intent) -> None:
        """Add a new intent."""

    def touch(self, intent: Intent) -> None:
        """This intent is about to change. Always called before an intent takes its claim again."""

    def defer(self, intent: Intent) -> None:
        """This intent, just changed, wakes after the edge: the kernel releases it until then."""

    def held(self) -> Iterator[Intent]:
        """After loading: every intent that is due, in flight, or holds its serial lane, by seq."""

    def window(self, until_ms: int, limit: int) -> list[Intent]:
        """The next intents, at most `limit`, that wake after the edge and not after `until_ms`."""

    def next_wake(self) -> int | None:
        """The first wake time after the edge."""

    def forget(self, marks: Marks) -> None:
        """From now on, finished intents below these marks are not returned."""

    def page(
        self, statuses: tuple[Status, ...] | None, lane: str | None, before_seq: int, limit: int
    ) -> list[Intent]:
        """Intents by falling seq from below `before_seq`, at most `limit`. For reading, not for changing."""


class CheckpointStore(Protocol):
    """What recovery and the checkpointer ask: the newest checkpoint, and whether the next one is due."""

    def load(self) -> Checkpoint | None:
        """The newest checkpoint, or None for an empty store."""

    def checkpoint(self, checkpoint: Checkpoint) -> Iterator[Job]:
        """Make everything up to here durable, step by step."""

    def unwritten(self) -> int:
        """The number of intents changed since the last checkpoint began."""

    def deferred(self) -> int:
        """How many of them wake after the edge: a checkpoint would evict these."""


class ReadStore(Protocol):
    """The queries of other readers: lists, metrics, predictions and admission. Nothing here changes the
    store, and the answers may differ between stores, because they show what is in memory."""

    def peek(self, id: str) -> Intent | None:
        """The intent with this id if it is in memory, forgotten or not. For reading."""

    def changed(self) -> list[Intent]:
        """Every intent that may be newer than its row on disk, some of them twice. For reading."""

    def hot(self) -> int:
        """The number of intents in memory."""

    def large_bytes(self) -> int:
        """The size of large payloads (`limits.LARGE_PAYLOAD_BYTES`) in memory."""

    def archive(self) -> Archive:
        """The intents on disk, for readers beside the kernel. Overlaid with `changed` they are complete."""


class Store(KernelStore, CheckpointStore, ReadStore, Protocol):
    """A whole store, as the engine owns it. The module's docstring is the contract."""

    def close(self) -> None:
        """Close the store. Closing twice is fine."""


@runtime_checkable
class FolderStore(Protocol):
    """Optional: a store on disk, bound to the data folder of its log. The engine checks with `isinstance`."""

    def join(self, folder: str) -> None:
        """Called after `load` with the identity of the log's folder (`duetime.log.log.Foldered`). The first
        call binds the store to the folder; later calls raise `Mixed` if the store is bound to another."""


def forgotten(intent: Intent, marks: Marks) -> bool:
    """Whether a finished intent is below the marks. The one rule, for every store."""
    if intent.status not in FINAL:
        return False
    if intent.finished_at_ms == PURGED_MS:
        return True
    rare = intent.rare
    if (
        rare is not None
        and intent.created_at_ms >= marks.key_before_ms
        and (rare.key is not None or claim_of(intent) is not None)
    ):
        return False
    if intent.status is DEAD_LETTERED:
        return intent.finished_at_ms < marks.dead_before_ms
    return intent.finished_at_ms < marks.finished_before_ms or intent.ended <= marks.ended_to


def claim_of(intent: Intent) -> str | None:
    """The name of the claim that an intent holds in its current state, whatever the time. The one rule, for
    every store: a claim for a time is held for good, the others until the intent was handed out, or has
    ended."""
    rare = intent.rare
    if rare is None or rare.ties is None or rare.ties.claim is None:
        return None
    claim = rare.ties.claim
    if claim.until is not Until.TIME and (
        intent.status in FINAL or (intent.delivery and claim.until is not Until.END)
    ):
        return None
    return claim.name


def is_hot(intent: Intent, edge: Edge) -> bool:
    """Whether the kernel may hold this very object, so that it must stay in memory."""
    if intent.status in HOT or intent.holds or intent.armed:
        return True
    if intent.status in FINAL or not intent.wake_at_ms:
        return False
    return (intent.wake_at_ms, intent.seq) <= edge
