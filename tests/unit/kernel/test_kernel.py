"""The kernel as a whole: one record after another, the same every time."""

from __future__ import annotations

import msgspec
import pytest

from duetime.kernel.kernel import Kernel
from duetime.protocol.command import Advance, Command
from duetime.protocol.record import Record
from duetime.store.memory import MemoryStore
from tests.unit.kernel.bench import T0, Bench, delivered, stream


@pytest.mark.parametrize("seq", [0, 1, 3])
def test_a_gap_in_the_log_is_a_bug(seq):
    kernel = Kernel(MemoryStore())
    kernel.apply(Record(1, T0, Advance()))
    with pytest.raises(AssertionError, match="gaps"):
        kernel.apply(Record(seq, T0, Advance()))


def test_an_unknown_command_is_a_bug():
    kernel = Kernel(MemoryStore())
    with pytest.raises(AssertionError):
        kernel.apply(Record(1, T0, "nonsense"))  # type: ignore[arg-type]


def test_effects_and_changes_are_those_of_one_record():
    bench = Bench()
    first = bench.submit("a")
    second = bench.at(5)
    assert len(first.effects) == 1
    assert (second.effects, second.changes) == ([], [])


def test_every_command_is_known_to_the_codec():
    assert len({kind.__struct_config__.tag for kind in Command.__args__}) == len(Command.__args__)
    for kind in Command.__args__:
        info = msgspec.inspect.type_info(kind)
        assert isinstance(info, msgspec.inspect.StructType) and info.array_like


def test_a_claim_of_the_same_record_sees_what_became_due_with_it():
    bench = Bench()
    bench.submit("a", on=stream(), delay=100)
    bench.ms = 100
    assert delivered(bench.demand("w", "stream:s", 1, standing=False)) == ["a"]
