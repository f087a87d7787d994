"""The replica: a second kernel, fed with all frames of the log from the first, over the reference store.

Whatever the engine under test does (checkpoints, restarts, cold intents), each frame must lead to the same
answers, effects and changes here, and after each recovery both states must be equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import zip_longest

import msgspec

from duetime.engine.shell.pump import Turn
from duetime.kernel.kernel import Applied, Kernel
from duetime.kernel.state import State
from duetime.log.frame import Frame
from duetime.log.log import Position
from duetime.protocol import record as codec
from duetime.protocol.intent import Intent
from duetime.protocol.record import Record
from duetime.protocol.reply import Answer, Existing
from duetime.store.memory import MemoryStore
from duetime.store.store import SEQ_MAX


class Replica:
    """A kernel by full replay."""

    def __init__(self) -> None:
        self.kernel = Kernel(MemoryStore())
        self.frames = 0
        """The number of frames it has seen."""

    def records(self, frame: Frame) -> list[Record]:
        """A frame's records, as a reader of the log decodes them."""
        commands = codec.decode(frame.body)
        assert len(commands) == frame.count, f"{frame.count} records were written, {len(commands)} are there"
        assert frame.first == self.kernel.state.records + 1, "the log has no gaps"
        return [Record(frame.first + n, frame.at_ms, command) for n, command in enumerate(commands)]


def compare(turn: Turn, applied: Sequence[Applied], position: Position) -> None:
    """The engine's turn must equal the replica's result for the same frame."""
    effects = [effect for each in applied for effect in each.effects]
    changes = [change for each in applied for change in each.changes]
    _check_equal("change", position, turn.changes, changes)
    _check_equal("effect", position, turn.effects, effects)
    for one, other in zip(turn.answers, applied, strict=True):
        assert plain(one) == plain(other.answer), f"at {position}: {one}, by replay {other.answer}"


def _check_equal(word: str, position: Position, mine: Sequence[object], theirs: Sequence[object]) -> None:
    for number, (one, other) in enumerate(zip_longest(mine, theirs)):
        assert one == other, f"at {position}, {word} {number}: {one}, by replay {other}"


def plain(answer: Answer) -> bytes:
    """An answer as bytes, without what has no meaning outside its process."""
    if isinstance(answer, list):
        return b"".join(plain(each) if not isinstance(each, bool) else bytes((each,)) for each in answer)
    if isinstance(answer, Existing):
        # Only its identity. A cold intent is read from disk for the answer, and a later record of the same
        # frame may change the intent itself.
        return f"existing {answer.intent.seq} {answer.intent.id}".encode()
    return row(answer) if isinstance(answer, Intent) else codec.encode(answer)


def row(intent: Intent) -> bytes:
    """An intent as bytes, without the fields that have no meaning on disk."""
    armed, cycle = intent.armed, intent.cycle
    intent.armed = intent.cycle = 0
    try:
        return codec.encode(intent)
    finally:
        intent.armed, intent.cycle = armed, cycle


def digest(state: State) -> str:
    """A digest of the whole state, independent of how the state was reached."""
    hashed = sha256()
    for name, value in parts(state).items():
        hashed.update(name.encode())
        hashed.update(value)
    return hashed.hexdigest()


def parts(state: State) -> dict[str, bytes]:
    """A state in pieces: the checkpoint, and each intent."""
    checkpoint = state.checkpoint(0)
    found = {name: codec.encode(getattr(checkpoint, name)) for name in checkpoint.__struct_fields__}
    for name in ("pending", "paused", "turns"):  # the order of lanes has no meaning
        value = getattr(checkpoint, name)
        found[name] = codec.encode(sorted(value.items() if isinstance(value, dict) else value))
    for intent in state.store.page(None, None, SEQ_MAX, 1 << 30):
        found[f"intent {intent.id}"] = row(intent)
    return found


def check_same(mine: State, theirs: State) -> None:
    """The state under test must equal the replica's; the message names the difference."""
    one, other = parts(mine), parts(theirs)
    if one != other:
        names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
        shown = [
            f"{name}: {_shown(one.get(name))}, by replay {_shown(other.get(name))}" for name in names[:3]
        ]
        raise AssertionError(f"checkpoint and tail do not add up to what the log does: {'; '.join(shown)}")


def _shown(value: bytes | None) -> str:
    return "nothing" if value is None else str(msgspec.msgpack.decode(value))
