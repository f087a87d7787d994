"""Workers that are killed, stopped for too long or told to go: nothing is lost, nothing counts twice."""

from __future__ import annotations

import signal

import pytest

from duetime import Retry, Status
from tests.http.listener import Listener
from tests.worker import functions
from tests.worker.process import WAIT_S, WorkerProcess
from tests.worker.silent import holding

LEASE_MS, LEASE = 1_000, "1s"
TEN_MINUTES = Retry(initial_delay="10m", max_delay="10m")


def stop_beyond_leases(server, worker: WorkerProcess) -> None:
    """Stop a worker until a lease as long as its own, given after the stop, has run out."""
    worker.signal(signal.SIGSTOP)
    silent = server.create(delayMs=0, stream={"name": "silent"}, leaseMs=LEASE_MS)["intentId"]
    with Listener(server) as events, holding(server, "silent"):
        events.until(lambda seen: seen.data.get("intentId") == silent and seen.data["error"])
    server.ask("POST", f"/v1/intents/{silent}/cancel")
    worker.signal(signal.SIGCONT)


def test_deliveries_of_a_killed_worker_run_again_with_a_higher_number(server, app, told, tmp_path):
    """Pain 3, flaw 16: killed, and nothing is lost."""
    with WorkerProcess(server) as first:
        handles = functions.held.schedule_many([(told.address, str(tmp_path / "go"))] * 20).wait()
        assert {told.next()["delivery"] for _ in handles} == {1}
        first.kill()
    (tmp_path / "go").touch()
    with WorkerProcess(server):
        assert {handle.result(WAIT_S).wait() for handle in handles} == {2}


def test_a_killed_worker_s_delivery_runs_again_at_once_though_its_retry_has_a_delay(
    server, app, told, tmp_path
):
    with WorkerProcess(server) as first:
        task = functions.held.options(lease="1h", retry=TEN_MINUTES)
        handle = task.schedule(told.address, str(tmp_path / "go")).wait()
        told.next()
        first.kill()
    (tmp_path / "go").touch()
    with WorkerProcess(server):
        assert handle.result(WAIT_S).wait() == 2
    assert handle.view().wait().attempts == 2


def test_at_most_once_is_never_run_again(server, app, told, tmp_path):
    once = functions.held.options(guarantee="AT_MOST_ONCE")
    with WorkerProcess(server) as first:
        handle = once.schedule(told.address, str(tmp_path / "go")).wait()
        told.next()
        first.kill()
    with WorkerProcess(server):
        functions.told.schedule(told.address).wait().result(WAIT_S).wait()
        assert handle.status().wait() is Status.DEAD_LETTERED
    assert [each["id"] for each in told.rest()].count(handle.id) == 0


def test_a_worker_that_stood_still_is_too_late(server, app, told, tmp_path):
    """Stopped beyond its lease: another runs the intent, and what the first says afterwards is refused."""
    short = functions.held.options(lease="1s")
    with WorkerProcess(server) as first:
        handle = short.schedule(told.address, str(tmp_path / "go")).wait()
        assert told.next()["delivery"] == 1
        first.signal(signal.SIGSTOP)
        with WorkerProcess(server):
            assert told.next()["delivery"] == 2
            (tmp_path / "go").touch()
            assert handle.result(WAIT_S).wait() == 2
            first.signal(signal.SIGCONT)
            first.says(f"{handle.id}, delivery 1, (came too late|is stopped: its lease has expired)")
    assert handle.view().wait().delivery == 2


def test_a_late_outcome_is_refused_and_shown(server, app, told):
    """A function that blocks everything cannot even be stopped: its outcome comes, and comes too late."""
    with WorkerProcess(server) as first:
        handle = functions.blocks.schedule(told.address, 1.0).wait()
        assert told.next()["delivery"] == 1
        first.signal(signal.SIGSTOP)
        with WorkerProcess(server):
            assert handle.result(WAIT_S).wait() == 2
            first.signal(signal.SIGCONT)
            first.says(f"The outcome of intent {handle.id}, delivery 1, came too late")
    assert handle.view().wait().delivery == 2


def test_a_function_that_blocks_the_loop_keeps_its_lease(server, app, told):
    """Pain 17, flaw 21: signs of life come from another thread."""
    with WorkerProcess(server):
        handle = functions.blocks.schedule(told.address, 3.0).wait()  # three times the lease
        assert handle.result(WAIT_S).wait() == 1
    assert len([told.next(), *told.rest()]) == 1


class TestDraining:
    """SIGTERM: finish, hand back, leave."""

    def test_running_functions_are_finished(self, server, app, told, tmp_path):
        with WorkerProcess(server) as worker:
            handle = functions.held.schedule(told.address, str(tmp_path / "go")).wait()
            told.next()
            worker.signal(signal.SIGTERM)
            worker.says("Stopping: 0 deliveries are returned, 1 are still running")
            functions.told.schedule(told.address).wait()
            (tmp_path / "go").touch()
            assert worker.wait() == 0
            assert handle.result(WAIT_S).wait() == 1
            assert [each["event"] for each in told.rest()] == ["ended"]

    def test_the_rest_is_handed_back_at_once(self, server, app, told, tmp_path):
        """Leases are an hour long: whoever waits for one waits in vain."""
        with WorkerProcess(server, options=("--drain", "0.2", "--concurrency", "3")) as worker:
            long = functions.held.options(lease="1h")
            handles = long.schedule_many([(told.address, str(tmp_path / "go"))] * 5).wait()
            for _ in range(3):
                told.next()
            assert worker.stop() == 0
            worker.says("3 deliveries did not finish in time")
        assert [told.next()["event"] for _ in range(3)] == ["cancelled"] * 3
        (tmp_path / "go").touch()
        with WorkerProcess(server):
            assert sorted(handle.result(WAIT_S).wait() for handle in handles) == [1, 1, 2, 2, 2]
        views = [handle.view().wait() for handle in handles]
        assert [(view.attempts, view.last_error) for view in views] == [(1, None)] * 5

    @pytest.mark.parametrize("retry", [TEN_MINUTES, Retry(max_attempts=1)])
    def test_a_retry_with_a_delay_or_a_single_attempt_is_handed_back_at_once_too(
        self, server, app, told, tmp_path, retry
    ):
        with WorkerProcess(server, options=("--drain", "0.2")) as worker:
            task = functions.held.options(lease="1h", retry=retry)
            handle = task.schedule(told.address, str(tmp_path / "go")).wait()
            told.next()
            assert worker.stop() == 0
        (tmp_path / "go").touch()
        with WorkerProcess(server):
            assert handle.result(WAIT_S).wait() == 2
        assert handle.view().wait().attempts == 1

    def test_at_most_once_that_had_begun_is_a_dead_letter(self, server, app, told, tmp_path):
        with WorkerProcess(server, options=("--drain", "0.2")) as worker:
            once = functions.held.options(lease="1h", guarantee="AT_MOST_ONCE")
            handle = once.schedule(told.address, str(tmp_path / "go")).wait()
            told.next()
            assert worker.stop() == 0
        view = handle.view().wait()
        assert view.status is Status.DEAD_LETTERED
        assert view.last_error is not None and "stopped before it was done" in view.last_error.message

    def test_a_delivery_that_had_not_begun_costs_no_attempt(self, server, app, told):
        """Two processes for heavy functions: the others wait in the worker, and go back untouched."""
        options = ("--drain", "0", "--queues", "heavy", "--concurrency", "5")
        with WorkerProcess(server, options=options) as worker:
            handles = functions.spins.options(lease="1h").schedule_many([(told.address,)] * 5).wait()
            began = {told.next()["id"], told.next()["id"]}
            assert worker.stop() == 0
        for handle in handles:
            view = handle.view().wait()
            waits = (Status.SCHEDULED, Status.DUE)  # the one becomes the other at the next tick
            assert (view.status in waits, view.attempts) == (True, 0)
            assert view.delivery == 1, "this one began" if handle.id in began else "it came and went back"

    def test_a_function_that_blocks_the_loop_does_not_keep_it(self, server, app, told):
        with WorkerProcess(server, options=("--drain", "0")) as worker:
            handle = functions.blocks.options(lease="1h").schedule(told.address, 3_600).wait()
            told.next()
            assert worker.stop() == 0
            worker.says("A function blocks the event loop; exiting without it")
        view = handle.view().wait()
        assert (view.status in (Status.SCHEDULED, Status.DUE), view.attempts) == (True, 0)
        assert handle.cancel().wait().status is Status.CANCELED

    @pytest.mark.parametrize("function", [functions.blocks_first, functions.thread_first])
    def test_a_function_that_cannot_be_stopped_runs_nowhere_else_before_its_process_has_ended(
        self, server, app, told, tmp_path, function
    ):
        """And costs no attempt: there is only one."""
        with WorkerProcess(server, options=("--drain", "0")) as worker:
            handle = function.schedule(told.address, str(tmp_path / "first")).wait()
            assert told.next()["event"] == "began"
            with WorkerProcess(server):
                assert worker.stop() == 0
                again = told.next()
                assert (again["event"], again["delivery"], again["attempt"]) == ("again", 2, 1)
                assert not again["alive"]
                handle.result(WAIT_S).wait()

    def test_a_second_signal_stops_it_at_once(self, server, app, told, tmp_path):
        with WorkerProcess(server) as worker:
            held = functions.held.options(lease="1h")
            handle = held.schedule(told.address, str(tmp_path / "go")).wait()
            others = {name: held.schedule(told.address, str(tmp_path / name)).wait() for name in ("a", "b")}
            for _ in range(3):
                told.next()
            worker.signal(signal.SIGTERM)
            worker.says("Stopping")
            for name, other in others.items():
                (tmp_path / name).touch()
                other.result(WAIT_S).wait()
            # The second outcome was sent after the word that it stops: the server has heard of that, too.
            worker.signal(signal.SIGTERM)
            assert worker.wait() == 1
        (tmp_path / "go").touch()
        with WorkerProcess(server):
            assert handle.result(WAIT_S).wait() == 2
        assert handle.view().wait().attempts == 1, "it had been told to stop before"


def test_a_worker_reconnects_when_the_server_is_back(server, app, told, tmp_path):
    """Pain 4: it takes work again after every reconnect."""
    server.stay()
    with WorkerProcess(server) as worker:
        handle = functions.held.schedule(told.address, str(tmp_path / "go")).wait()
        told.next()
        server.kill()
        worker.says("No connection")
        server.start()
        worker.says("Connected to", times=2)
        (tmp_path / "go").touch()
        # It ran on, and its lease is alive: the outcome counts, over the new connection.
        assert handle.result(WAIT_S).wait() == 1
        assert functions.add.schedule(1, 1).wait().result(WAIT_S).wait()[0] == 2


def run_rounds(server, app, told, rounds: int) -> None:
    """Under load, workers are killed, stopped beyond their lease and continued; at the end all has run."""
    each = 30
    often = functions.work.options(lease=LEASE)
    once = functions.work.options(guarantee="AT_MOST_ONCE", lease=LEASE)
    handles, only = [], []
    heard: list[dict[str, object]] = []
    workers = [WorkerProcess(server).ready() for _ in range(2)]
    try:
        for round in range(rounds):
            handles += often.schedule_many([(told.address, 0.02)] * each).wait()
            only += once.schedule_many([(told.address, 0.02)] * each).wait()
            heard += [told.next() for _ in range(each)]
            victim = workers.pop(0)
            if round % 2:
                stop_beyond_leases(server, victim)
                workers.append(victim)
            else:
                victim.kill()
                workers.append(WorkerProcess(server).ready())
            heard += told.rest()
        for handle in handles:
            handle.result(WAIT_S).wait()
        ends = [app.backend.wait(handle.id) for handle in only]
        statuses = [app.call(end).wait(WAIT_S).status for end in ends]
    finally:
        for worker in workers:
            worker.kill()
    heard += told.rest()
    runs = [each["id"] for each in heard]
    assert all(runs.count(handle.id) >= 1 for handle in handles), "none is lost"
    assert all(runs.count(handle.id) <= 1 for handle in only), "at most once is at most once"
    assert set(statuses) <= {Status.ACKED, Status.DEAD_LETTERED}
    numbers = [(each["id"], each["delivery"]) for each in heard]
    assert len(numbers) == len(set(numbers)), "no delivery is handed out twice"


def test_rounds_of_trouble(server, app, told):
    run_rounds(server, app, told, 4)


@pytest.mark.slow
def test_fifty_rounds_of_trouble(server, app, told):
    run_rounds(server, app, told, 50)
