"""Whether anybody watches: the changes are told or not, and nothing else is different."""

from __future__ import annotations

import pytest

from duetime.kernel import invariants
from tests.unit.kernel.bench import Bench, delivered, stream


def test_without_observers_changes_are_empty_and_all_else_is_the_same():
    watched, unwatched = Bench(), Bench()
    unwatched.watched = False
    for bench in (watched, unwatched):
        assert delivered(bench.submit("a")) == ["a"]
    first, second = (bench.submit("b", after=("a",)) for bench in (watched, unwatched))
    assert [change.new.name for change in first.changes] == ["BLOCKED"]
    assert second.changes == []
    assert watched.status("b") is unwatched.status("b")


def test_the_invariants_notice_work_that_waits_while_a_consumer_asks_for_it():
    bench = Bench()
    bench.submit("a", on=stream())
    bench.kernel.state.lanes["stream:s"].ask("w")
    with pytest.raises(AssertionError, match="consumers ask for it"):
        invariants._check_not_idle(bench.kernel.state, bench.kernel.state.lanes["stream:s"])
