"""Flows on a server: results go from step to step, whichever worker runs them."""

from __future__ import annotations

from tests.worker import functions as f
from tests.worker.process import WAIT_S, WorkerProcess


def test_results_go_from_step_to_step_on_workers(server, app):
    flow = f.add.bind(1, 2) | f.length.bind()  # the second in another process
    group = [f.add.bind(1, 1) | f.length.bind(), f.length.bind([1])] | f.length.bind() | f.add.bind(5)
    with WorkerProcess(server):
        assert app.chain(flow).wait().result(WAIT_S).wait() == 4
        assert app.chain(group).wait().result(WAIT_S).wait()[0] == 7
        failed = app.chain(f.moody.bind("reject"), on_failure=f.told_of.bind()).wait()
        assert failed.failure.result(WAIT_S).wait() == "DEAD_LETTERED it is wrong"
        late = app.chain(f.add.bind(1, 2), f.length.delay("1s").bind()).wait()
        assert late.result(WAIT_S).wait() == 4
        first, second = (step.view().wait() for step in late.steps)
        assert second.after_delay_ms == 1_000
        assert (second.execute_at - first.finished_at).total_seconds() == 1.0


def test_options_from_arguments_reach_workers(server, app):
    with WorkerProcess(server):
        handles = f.tagged.schedule_many([(f"w{number % 2}",) for number in range(4)]).wait()
        assert [handle.result(WAIT_S).wait() for handle in handles] == [{"who": "w0"}, {"who": "w1"}] * 2
        assert handles[0].id == handles[2].id != handles[1].id
