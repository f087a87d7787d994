"""A group whose workers are killed again and again: its callback runs once, after all members."""

from __future__ import annotations

from duetime import Status
from tests.worker import functions
from tests.worker.process import WorkerProcess

SIZE = 10_000
ROUNDS = 2
FEW = ("--concurrency", "20")


def test_pain_15_the_callback_runs_once_and_after_all_though_workers_are_killed(server, app, told):
    members = [functions.counted.bind(number, told.address, SIZE // 50) for number in range(SIZE)]
    group = app.group(members, then=functions.summed.bind(told.address)).wait(60)
    for _ in range(ROUNDS):
        workers = [WorkerProcess(server, options=FEW) for _ in range(2)]
        pids = {worker.pid for worker in workers}
        for _ in range(3):
            while told.next()["pid"] not in pids:
                pass  # said by one that was killed since
        for worker in workers:
            worker.kill()
    left = group.progress().wait().left
    assert 0 < left < SIZE, "they were killed in the midst of it"
    assert group.status().wait() is Status.BLOCKED
    with WorkerProcess(server, options=FEW), WorkerProcess(server, options=FEW):
        assert group.result(60).wait() == SIZE
    words = [said for said in told.rest() if "acked" in said]
    assert [(said["acked"], said["sum"]) for said in words] == [(SIZE, sum(range(SIZE)))]
    view = group.view().wait()
    assert (view.status, view.delivery, view.attempts) == (Status.ACKED, 1, 1)
    views = app.find(limit=SIZE + 1).wait()
    assert {view.status for view in views} == {Status.ACKED} and len(views) == SIZE + 1
    assert any(view.delivery > 1 for view in views), "some ran again"
