"""How many workers a queue needs: plain arithmetic, and the numbers say where they come from."""

from __future__ import annotations

import pytest

from duetime.insight.autoscale import autoscale
from duetime.limits import AUTOSCALE_RISK_MAX, AUTOSCALE_WORKERS_MAX
from duetime.protocol.command import Demand, Pause
from duetime.protocol.terms import Callback, Stream, Task
from duetime.wire.autoscale import QueueSignal
from tests.unit.insight.rig import SETTINGS, World, run, world

JOBS = Stream("jobs")


async def learn(w: World, ms: int = 2_000) -> None:
    """One worker that takes four at a time; each takes two seconds."""
    await w.engine.ask(Demand("w1", "stream:jobs", 8))
    await w.many("past", 8, target=JOBS)
    await w.pass_ms(ms)
    await w.end()
    await w.engine.ask(Demand("w1", "stream:jobs", 4))


def one(w: World, target_s: float = 60, lane: str = "stream:jobs", coming: int = 0) -> QueueSignal:
    [found] = autoscale(w.engine, target_s, lane, {lane: coming}).queues
    return found


def test_demand_is_waiting_work_by_duration_over_workers(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await learn(w)
            await w.many("a", 104, target=JOBS)
            found = one(w)
            assert (found.backlog, found.running, found.workers, found.capacity) == (100, 4, 1, 4)
            assert found.measured and found.expected_ms == pytest.approx(2_000, rel=0.05)
            assert found.work_seconds == pytest.approx(204, rel=0.05)
            assert found.drain_seconds == pytest.approx(51, rel=0.05)
            assert found.lateness_risk == pytest.approx(0.85, rel=0.05) and found.risk == "LOW"
            assert found.suggested_workers == 1 and "within the target" in found.narrative

    run(main())


def test_less_time_takes_more_workers(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await learn(w)
            await w.many("a", 104, target=JOBS)
            found = one(w, 10)
            assert found.risk == "HIGH" and found.lateness_risk > 4
            assert found.suggested_workers in (5, 6), "204 s of work, four at a time each, within ten seconds"
            assert "beyond the target of 10 s" in found.narrative
            assert one(w, 10, coming=100).suggested_workers in (10, 11), "what comes counts, too"

    run(main())


def test_a_second_worker_halves_the_time_and_counts_once(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await learn(w)
            await w.engine.ask(Demand("w2", "stream:jobs", 4))
            await w.many("a", 108, target=JOBS)
            found = one(w, 10)
            assert (found.workers, found.capacity) == (2, 8)
            assert found.drain_seconds == pytest.approx(26, rel=0.05) and found.suggested_workers in (5, 6)

    run(main())


def test_without_workers_one_is_asked_for(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 3, target=JOBS)
            found = one(w)
            assert (found.workers, found.capacity, found.drain_seconds) == (0, 0, None)
            assert not found.measured and found.risk == "HIGH" and found.suggested_workers == 1
            assert found.lateness_risk == AUTOSCALE_RISK_MAX, "the number says what the word says"
            assert "no worker" in found.narrative

    run(main())


def test_an_empty_queue_needs_none_and_a_running_one_keeps_its_own(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            found = one(w, lane="task:nothing")
            assert (found.queue, found.suggested_workers, found.risk) == ("nothing", 0, "NONE")
            await learn(w)
            assert one(w).suggested_workers == 0
            await w.many("a", 2, target=JOBS)
            found = one(w)
            assert (found.backlog, found.running, found.suggested_workers) == (0, 2, 1)
            assert "Nothing waits; 2 under way, with 1 worker." in found.narrative

    run(main())


def test_only_what_workers_ask_for_is_listed(tmp_path):
    async def main():
        async with world(tmp_path, settings=SETTINGS) as w:
            await w.many("c", 300, target=Callback("https://x.example/"))
            await w.many("t", 300, target=Task("pushed"))
            await w.many("s", 1, target=JOBS)
            assert [each.lane for each in autoscale(w.engine).queues] == ["stream:jobs"]

    run(main())


def test_a_number_that_is_a_mistake_is_cut(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await learn(w, 20_000)
            await w.many("a", 900, target=JOBS)
            assert one(w, 0.01).suggested_workers == AUTOSCALE_WORKERS_MAX

    run(main())


def test_risk_and_lateness_risk_agree(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 500, target=JOBS)
            for target_s in (1, 60, 3_600):
                found = one(w, target_s)
                assert (found.risk == "HIGH") == (found.lateness_risk > 1), found

    run(main())


def test_workers_do_not_help_a_paused_queue(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            await w.many("a", 500, target=JOBS)
            await w.engine.ask(Pause("stream:jobs"))
            found = one(w)
            assert (found.backlog, found.suggested_workers, found.risk) == (500, 0, "NONE")
            assert found.lateness_risk == 0 and "Paused" in found.narrative

    run(main())
