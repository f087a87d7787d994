"""Handles of one storage see one log."""

from __future__ import annotations

import pytest

from duetime.errors import Moved
from duetime.log.memory import MemoryLog, Storage
from duetime.testing.contracts.log import append_all, bodies_of, frame
from tests.torture.log_script import run_now


def test_a_stale_writer_is_refused_and_told_the_tail() -> None:
    storage = Storage()
    old, new = MemoryLog(storage), MemoryLog(storage)
    run_now(append_all(old, [b"a"]))
    run_now(append_all(new, [b"b"]))
    with pytest.raises(Moved) as moved:
        run_now(old.append(71, frame(b"c")))
    assert moved.value.details == {"tail": 142}
    assert run_now(bodies_of(old)) == [b"a", b"b"]


def test_without_a_storage_each_has_its_own() -> None:
    one, two = MemoryLog(), MemoryLog()
    run_now(append_all(one, [b"a"]))
    assert run_now(two.tail()) == 0
