"""What users of other job systems suffer from, and must not here: the names have the numbers of the lists.

More of them: test_death.py (pains 3, 4, 13, 17), test_idle.py (pain 4), test_groups.py (pain 15), tests/flaws
(flaws 16, 17, 21-23).
"""

from __future__ import annotations

import signal

import pytest

from duetime import Retry, Status
from duetime.errors import NotAcked
from tests.http.listener import Listener
from tests.worker import functions
from tests.worker.process import WorkerProcess


def test_pain_03_a_poison_intent_that_kills_its_workers_becomes_a_dead_letter_with_that_reason(
    server, app, told
):
    """Flaw 21, too: each death counts an attempt, so that it does not go round for ever."""
    handle = functions.poison.schedule(told.address).wait()
    with WorkerProcess(server, options=("--processes", "2")):
        with pytest.raises(NotAcked, match=r"DEAD_LETTERED: lost: .* left without an outcome"):
            handle.result(timeout="60s").wait()
        assert [told.next()["attempt"] for _ in range(3)] == [1, 2, 3]
        view = handle.view().wait()
        assert view.attempts == 3 and view.last_error is not None and view.last_error.kind == "lost"
        assert functions.add.schedule(1, 2).wait().result(timeout="60s").wait()[0] == 3, "others go on"


def test_pain_14_a_cancel_is_remembered_with_no_worker_alive(server, app, told, tmp_path):
    waiting = functions.told.schedule(told.address).wait()
    waiting.cancel().wait()
    with WorkerProcess(server) as worker:
        running = functions.held.schedule(told.address, str(tmp_path / "go")).wait()
        assert told.next()["event"] == "began"
        worker.signal(signal.SIGKILL)
        worker.wait()
    running.cancel().wait()
    assert running.status().wait() is waiting.status().wait() is Status.CANCELED
    with WorkerProcess(server):
        functions.add.schedule(1, 2).wait().result(timeout="30s").wait()
        assert told.rest() == [], "neither runs any more"


def test_pain_14_a_cancelled_process_is_ended_and_the_next_with_its_place_is_not(server, app, told):
    with WorkerProcess(server, options=("--queues", "heavy")):
        handle = functions.spins.schedule(told.address).wait()
        told.next()
        handle.cancel().wait()
        assert functions.heavy.schedule(1, 2).wait().result(timeout="30s").wait()[0] == 3
        assert handle.status().wait() is Status.CANCELED


def test_pain_16_what_is_done_stays_done_when_its_worker_dies(server, app):
    with WorkerProcess(server) as worker:
        handle = functions.add.options(lease="1s").schedule(1, 2).wait()
        assert handle.result(timeout="30s").wait()[0] == 3
        worker.signal(signal.SIGKILL)
        worker.wait()
    late = functions.work.options(lease="1s", retry=Retry(max_attempts=1)).schedule("", 0).wait()
    assert late.status().wait() is Status.DUE, "nobody is there"
    assert handle.status().wait() is Status.ACKED and handle.view().wait().attempts == 1


def test_flaw_08_without_workers_an_intent_waits_and_goes_to_one_worker(server, app, told):
    handles = [functions.told.schedule(told.address).wait() for _ in range(20)]
    assert {handle.status().wait() for handle in handles} == {Status.DUE}
    with WorkerProcess(server), WorkerProcess(server):
        for handle in handles:
            handle.result(timeout="30s").wait()
    heard = [told.next()["id"] for _ in handles]
    assert sorted(heard) == sorted(handle.id for handle in handles) and told.rest() == []


def test_flaw_18_two_workers_never_run_one_delivery_and_a_dead_one_is_followed(server, app, told, tmp_path):
    handle = functions.held.schedule(told.address, str(tmp_path / "go")).wait()
    with WorkerProcess(server) as one, WorkerProcess(server) as two:
        first = told.next()
        dead, other = (one, two) if first["pid"] == one.pid else (two, one)
        dead.signal(signal.SIGKILL)
        dead.wait()
        again = told.next()
        assert again["pid"] == other.pid and again["delivery"] == first["delivery"] + 1
        (tmp_path / "go").touch()
        assert handle.result(timeout="30s").wait() == again["delivery"]


def test_flaw_19_an_error_of_a_function_is_not_a_connection_error_and_obeys_its_retry_limit(server, app):
    """Also one that looks like a broken connection."""
    with WorkerProcess(server):
        handle = functions.breaks.schedule().wait()
        with pytest.raises(NotAcked, match="ConnectionError: not ours"):
            handle.result(timeout="30s").wait()
        assert handle.view().wait().attempts == handle.view().wait().delivery == 1


def test_flaw_20_an_unreachable_server_is_an_error_and_not_an_endless_wait(server, app):
    server.kill()
    call = functions.add.schedule(1, 2)
    with pytest.raises(Exception, match=r"cannot be reached|refused|Unreachable"):
        call.wait()


def test_flaw_22_a_missing_function_is_never_a_silent_success(server, app, told):
    """It goes back for a worker that knows it; what became of it is always to be seen."""
    made = server.create(delayMs=0, task={"name": "nobody", "queue": "default"}, payload=[[]])
    with Listener(server) as events, WorkerProcess(server) as worker:
        worker.says("which this worker does not have")
        events.reached(made["intentId"], "SCHEDULED")
        handle = app.handle(made["intentId"])
        assert "does not know the function" in handle.why().wait().sentence
        assert handle.status().wait() is Status.SCHEDULED
