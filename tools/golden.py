"""Golden logs: what a release wrote, and the state it adds up to. Later versions must read it alike.

`python -m tools.golden add 0.1.0` saves the log of a release; it never replaces one that is there.
`python -m tools.golden --replace-unreleased` makes the log of what is not released yet anew: it is the
only one that may change, and only while no user has data of that version.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

import msgspec

from duetime.kernel.kernel import Kernel
from duetime.kernel.state import State
from duetime.log import frame as frames
from duetime.log.frame import Frame
from duetime.protocol import record as codec
from duetime.protocol.record import Record
from duetime.store.memory import MemoryStore
from duetime.store.store import SEQ_MAX
from duetime.testing.sim.simulation import Simulation

FOLDER = Path(__file__).parents[1] / "tests" / "golden"
UNRELEASED = "unreleased"
# A few runs in which, together, every command was given.
SEEDS = (3, 7, 14, 25, 36, 42, 44, 64)
STEPS = 120
_NOT_ON_DISK = frozenset({"armed", "cycle"})
_LANES = frozenset({"pending", "paused", "turns", "tally", "waiting"})


class Story(msgspec.Struct):
    """One run: where its bytes are in the file, and what they add up to."""

    seed: int
    start: int
    end: int
    frames: int
    records: int
    state: str
    """The digest of the state."""
    effects: str
    """The digest of every effect, in order."""


class Golden(msgspec.Struct):
    """All runs of one release, and a few of their records in words."""

    version: str
    stories: list[Story]
    samples: dict[str, object]
    """By command: the longest of its kind, in words."""


def make(version: str) -> tuple[bytes, Golden]:
    """Play the seeds and keep what they wrote."""
    data = bytearray()
    golden = Golden(version, [], {})
    for seed in SEEDS:
        simulation = Simulation(seed)
        try:
            simulation.play(STEPS)
        finally:
            simulation.close()
        start = len(data)
        for position, frame in simulation.ledger.frames:
            data += frames.encode(position, 0, frame)
        state, effects, records = replay(bytes(data[start:]))
        golden.stories.append(
            Story(seed, start, len(data), len(simulation.ledger.frames), records, state, effects)
        )
    for name, command in samples(bytes(data)).items():
        golden.samples[name] = command
    return bytes(data), golden


def read(data: bytes) -> Iterator[Frame]:
    """The frames in these bytes."""
    place = 0
    while place < len(data):
        header, frame = frames.decode(memoryview(data)[place:], f"byte {place}")
        place += frames.ENVELOPE_BYTES + header.length
        yield frame


def replay(data: bytes) -> tuple[str, str, int]:
    """What a log adds up to today: the digests of state and effects, and the number of records."""
    kernel = Kernel(MemoryStore())
    effects = sha256()
    for frame in read(data):
        for number, command in enumerate(codec.decode(frame.body), frame.first):
            applied = kernel.apply(Record(number, frame.at_ms, command))
            effects.update(msgspec.json.encode([spell(effect, sparse=True) for effect in applied.effects]))
    return digest(kernel.state), effects.hexdigest(), kernel.state.records


def digest(state: State) -> str:
    """A state by the names and values of its fields. A field that is at its default is left out, so that
    a version which appends one still arrives at the same."""
    checkpoint = state.checkpoint(0)
    lanes = (sorted(checkpoint.pending.items()), sorted(checkpoint.paused), sorted(checkpoint.turns.items()))
    hashed = sha256(msgspec.json.encode([spell(checkpoint, sparse=True, without=_LANES), lanes]))
    for intent in state.store.page(None, None, SEQ_MAX, 1 << 30):
        hashed.update(msgspec.json.encode(spell(intent, sparse=True, without=_NOT_ON_DISK)))
    return hashed.hexdigest()


def samples(data: bytes) -> dict[str, object]:
    """The longest command of each kind, in words: a log has no names, so this says what each place is."""
    longest: dict[str, tuple[int, object]] = {}
    for frame in read(data):
        for command in codec.decode(frame.body):
            size = len(codec.encode(command))
            name = type(command).__name__
            if size > longest.get(name, (0, None))[0]:
                longest[name] = (size, spell(command))
    return {name: longest[name][1] for name in sorted(longest)}


def spell(value: object, *, sparse: bool = False, without: frozenset[str] = frozenset()) -> object:
    """A value with the names of its fields, as they are called today; `sparse` leaves defaults out."""
    if isinstance(value, msgspec.Struct):
        spelled: dict[str, object] = {"": type(value).__name__}
        for name, default in _fields(type(value)):
            part = getattr(value, name)
            if name not in without and not (sparse and part == default):
                spelled[name] = spell(part, sparse=sparse)
        return spelled
    if isinstance(value, tuple | list):
        return [spell(each, sparse=sparse) for each in value]
    return value.decode() if isinstance(value, bytes) else value


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, object], ...]:
    return tuple((field.name, field.default) for field in msgspec.structs.fields(kind))


def save(version: str) -> None:
    """Write both files of a version."""
    data, golden = make(version)
    (FOLDER / f"{version}.log").write_bytes(data)
    text = msgspec.json.format(msgspec.json.encode(golden), indent=1)
    (FOLDER / f"{version}.json").write_bytes(text + b"\n")


def main(arguments: list[str]) -> int:
    match arguments:
        case ["--replace-unreleased"]:
            save(UNRELEASED)
        case ["add", version] if version != UNRELEASED:
            if (FOLDER / f"{version}.log").exists():
                sys.stderr.write(
                    f"tests/golden/{version}.log is there; what a release wrote never changes.\n"
                )
                return 1
            save(version)
        case _:
            sys.stderr.write(f"{__doc__}\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
