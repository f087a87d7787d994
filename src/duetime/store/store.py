"""The `Store` protocol: where intents live between records. Synchronous: the kernel asks it directly.

A store shows one coherent state, whatever it holds in memory and whatever on disk. The kernel's
decisions must be the same over every store, so nothing here depends on what happens to be hot.

- `get`, `by_key` and `by_claim` give the one living object of an intent: while it is in memory, always the
  same object, changed in place by the kernel. A forgotten intent (see `forgotten`) is not there.
- `add` takes a new intent. `touch` is called *before* an intent is changed: a store that is writing a
  checkpoint keeps the intent as it was at the checkpoint's position first. Both write the store's `cycle`,
  which every checkpoint raises, into the intent; while the two are equal, touching it again is not needed.
- `window` brings the intents that wake next into memory, in order of (wake, seq), and moves the edge:
  everything that wakes at or before the edge is in memory from then on. `edge` is that place.
- `checkpoint` makes the state up to now durable in one transaction. It is a generator: each step does
  a little work in the caller's thread and yields a job that may run in another one, so a large
  checkpoint never stops the loop. Jobs are run one at a time, in order; the next step may be taken before
  they are done, except behind `settled`, which asks for all of them to be. When it is exhausted, the
  checkpoint is on stable storage. If it is abandoned, the earlier one still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from duetime.protocol.checkpoint import Checkpoint, Marks
from duetime.protocol.intent import DEAD_LETTERED, DISPATCHING, DUE, FINAL, PURGED_MS, Intent, Status
from duetime.protocol.terms import Until

if TYPE_CHECKING:
    from duetime.store.archive import Archive

Edge = tuple[int, int]
Job = Callable[[], None]

# Behind every intent of its millisecond.
SEQ_MAX = 1 << 62

# Intents with one of these are always in memory: they wait in a lane or are out.
HOT = frozenset({DUE, DISPATCHING})


def pause() -> None:
    """A job with nothing to do: the loop may have its turn."""


def settled() -> None:
    """A job with nothing to do: the next step is taken when all jobs before are done."""


class Store(Protocol):
    """Intents by id, by key, by the time they wake. See the module's text for the contract."""

    edge: Edge
    cycle: int

    def load(self) -> Checkpoint | None:
        """The newest checkpoint, or None for an empty store."""

    def get(self, id: str) -> Intent | None:
        """The intent with this id."""

    def by_key(self, key: str) -> Intent | None:
        """The newest intent with this idempotency key that is not forgotten."""

    def by_claim(self, name: str) -> Intent | None:
        """The newest intent that has a claim of this name (see `claim_of`) and is not forgotten."""

    def add(self, intent: Intent) -> None:
        """Take a new intent."""

    def touch(self, intent: Intent) -> None:
        """This intent is about to change. Always told of one that is to have its claim again."""

    def defer(self, intent: Intent) -> None:
        """This intent, just changed, wakes behind the edge: the kernel lets go of it until then."""

    def held(self) -> Iterator[Intent]:
        """After loading: every intent that is due, out, or holds its serial lane, by seq, one by one."""

    def window(self, until_ms: int, limit: int) -> list[Intent]:
        """The next intents, at most `limit`, that wake behind the edge and not after `until_ms`."""

    def next_wake(self) -> int | None:
        """The first wake behind the edge."""

    def forget(self, marks: Marks) -> None:
        """From now on, finished intents below these marks are gone."""

    def page(
        self, statuses: tuple[Status, ...] | None, lane: str | None, before_seq: int, limit: int
    ) -> list[Intent]:
        """Intents by falling seq from below `before_seq`, at most `limit`. For reading, not for change."""

    def checkpoint(self, checkpoint: Checkpoint) -> Iterator[Job]:
        """Make everything up to here durable, step by step."""

    def unwritten(self) -> int:
        """How many intents changed since the last checkpoint began."""

    def deferred(self) -> int:
        """How many of them wake behind the edge: a checkpoint would let go of them."""

    def changed(self) -> list[Intent]:
        """Every intent that may be newer than what is on disk, some of them twice. For reading."""

    def peek(self, id: str) -> Intent | None:
        """The intent with this id if it is in memory, forgotten or not. For reading."""

    def hot(self) -> int:
        """How many intents are in memory."""

    def large_bytes(self) -> int:
        """Bytes of large payloads (`limits.LARGE_PAYLOAD_BYTES`) in memory."""

    def archive(self) -> Archive:
        """What is on disk, for readers beside the kernel. Overlaid with `changed` it is the whole."""

    def close(self) -> None:
        """Let go. Closing twice is fine."""


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
    """The name of the claim that an intent has as it is now, whatever the time. The one rule, for every
    store: one for a time is had for good, the others until it was handed out, or has ended."""
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
