"""The `Log` protocol: bytes in order, appended by one writer at a time. Knows nothing of intents.

```
      trimmed        kept, can be read          not written yet
    ------------|---------------------------|- - - - - - - - - ->
             start                         tail
                     ^                      ^
                 stable: on the medium      the position the next frame will get
```

A *frame* is the log's unit: one batch of records, there whole or not at all. A *position* is the
place of a frame. Positions grow but need not be dense; the position after a frame is what `append`
returns. An empty log's tail is its start.

The contract, held by `duetime.testing.contracts.log` for every implementation:

- `append(at, frame)` is compare-and-append. If `at` is not the tail it raises `Moved` and changes
  nothing; so of two writers at most one wins, and a stale one cannot write. When it returns, the frame
  is in its place for every later reader and survives the death of this process (`kill -9`).
- `sync()` returns when every frame appended before the call is on stable storage and survives power
  loss. It is apart from `append` so that the writer can go on (timers keep firing) while the medium
  works, and one sync covers every batch that came meanwhile. Engines that are durable on append do
  nothing here.
- `append` may raise `NoSpace`: certainly not written, the log is as before, try again when there is
  room. It may raise `InDoubt`: perhaps written; the writer reads at `at` and compares epoch and nonce,
  it never assumes. Any other error, and every error of `sync`, is final: the writer must stop, because
  after a failed fsync nobody knows what is on the medium.
- `read(start)` gives every frame from `start` to the tail as it was when reading began, in order. A
  `start` inside the trimmed part, or one that is no frame's place, raises `Damaged`.
- `trim(below)` may forget frames whose position is less than `below`. It forgets whole units of its own
  choosing, never more than asked, and never the tail.
- What is read is what was written. Damage is raised as `Damaged` with its place, never returned.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from duetime.log.frame import Frame

Position = int


class Log(Protocol):
    """Frames in order. See the module's text for the contract."""

    async def open(self) -> None:
        """Take hold of the log, repair a torn tail, refuse any other damage."""

    async def start(self) -> Position:
        """The lowest position that can be read."""

    async def tail(self) -> Position:
        """The position the next frame will get."""

    async def append(self, at: Position, frame: Frame) -> Position:
        """Write `frame` at `at` if that is the tail; return the new tail."""

    async def sync(self) -> Position:
        """Make everything appended so far survive power loss; return the position it covers."""

    def read(self, start: Position) -> AsyncIterator[tuple[Position, Frame]]:
        """Every frame from `start` on, each with its position."""

    async def trim(self, below: Position) -> None:
        """Forget frames below this position, as far as whole segments allow."""

    async def close(self) -> None:
        """Sync and let go. Closing twice is fine."""
