"""Functions of every kind run in a worker as they do in an App, and their results come back."""

from __future__ import annotations

import os
from typing import Any

import pytest

from duetime import Client, Retry, Status
from duetime.errors import NotAcked
from tests.e2e.process import wait_for_end
from tests.http.listener import Listener
from tests.http.server import ServerProcess
from tests.worker import functions
from tests.worker.process import WAIT_S, WorkerProcess


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("functions") / "data") as server:
        yield server


@pytest.fixture(scope="module")
def worker(server):
    with WorkerProcess(server) as worker:
        yield worker


def result_of(call):
    return call.wait().result(WAIT_S).wait()


def error_of(call):
    """How it ended, which was not well."""
    with pytest.raises(NotAcked) as caught:
        result_of(call)
    view: Any = caught.value.details["view"]
    return view.last_error


@pytest.mark.parametrize("function", ["add", "plain", "heavy"])
def test_a_function_of_each_kind_runs_and_knows_its_delivery(worker, app, function):
    task = getattr(functions, function)
    assert result_of(task.schedule(1, 2)) == [3, 1, 1, 5]
    assert result_of(task.options(retry=Retry(max_attempts=7)).schedule(2, 2)) == [4, 1, 1, 7]


def test_many_at_once(worker, app):
    handles = functions.add.schedule_many([(n, n) for n in range(500)]).wait()
    assert [handle.result(WAIT_S).wait()[0] for handle in handles] == [2 * n for n in range(500)]


def test_a_function_can_schedule_another(worker, app):
    id = result_of(functions.chained.schedule(4))
    assert app.handle(id).result(WAIT_S).wait() == [5, 1, 1, 5]


def test_reject_snooze_and_errors_have_their_effect(worker, app):
    assert result_of(functions.moody.schedule("snooze")) == "snooze 2 1"
    assert result_of(functions.moody.schedule("fail")) == "fail 2 2"
    error = error_of(functions.moody.schedule("reject"))
    assert (error.kind, error.message) == ("rejected", "it is wrong")


def test_a_payload_that_does_not_fit_is_rejected(tmp_path):
    """One that was taken before any worker had said what the function takes."""
    with ServerProcess(tmp_path / "own") as own:
        made = own.create(delayMs=0, task={"name": "add"}, payload={"a": 1})
        with Listener(own) as events, WorkerProcess(own), Client(own.url) as client:
            events.reached(made["intentId"], "DEAD_LETTERED")
            error = client.get(made["intentId"]).wait().last_error
            assert error is not None and "does not fit the function" in error.message


class TestTimeouts:
    """An attempt has its time, and then it is really stopped."""

    def test_a_coroutine_is_cancelled(self, worker, app, told, tmp_path):
        once = functions.held.options(timeout="300ms", retry=Retry(max_attempts=1))
        error = error_of(once.schedule(told.address, str(tmp_path / "never")))
        assert error.kind == "timeout"
        assert [told.next()["event"], told.next()["event"]] == ["began", "cancelled"]

    def test_a_thread_is_given_up_and_its_end_is_not_heard(self, worker, app, told, tmp_path):
        once = functions.thread_held.options(timeout="300ms", retry=Retry(max_attempts=1))
        handle = once.schedule(told.address, str(tmp_path / "go")).wait()
        with pytest.raises(NotAcked, match="ran longer than 300 ms"):
            handle.result(WAIT_S).wait()
        assert told.next()["event"] == "began"
        (tmp_path / "go").touch()
        assert told.next()["event"] == "ended"
        assert handle.status().wait() is Status.DEAD_LETTERED

    def test_a_timed_out_process_is_killed_and_replaced(self, worker, app, told):
        error = error_of(functions.spins.options(timeout="4s").schedule(told.address))
        assert error.kind == "timeout" and "killed" in error.message
        pid = told.next()["pid"]
        wait_for_end(pid)
        assert result_of(functions.heavy.schedule(1, 1))[0] == 2


@pytest.mark.parametrize("kind", ["thread", "process", "coroutine"])
def test_a_soft_time_limit_is_raised_inside_the_function(worker, app, kind):
    assert result_of(getattr(functions, f"soft_{kind}").schedule()) == "stopped in attempt 1"


@pytest.mark.parametrize("task", [functions.picky, functions.picky_process], ids=["thread", "process"])
def test_errors_are_retried_by_their_class(worker, app, task):
    assert result_of(task.schedule(False)) == 3
    error = error_of(task.schedule(True))
    assert (error.kind, error.message) == ("ValueError", "wrong")


def test_a_cancelled_intent_is_stopped_while_it_runs(worker, app, told, tmp_path):
    handle = functions.held.schedule(told.address, str(tmp_path / "never")).wait()
    assert told.next()["event"] == "began"
    handle.cancel().wait()
    assert told.next()["event"] == "cancelled"
    assert handle.status().wait() is Status.CANCELED
    worker.says("is stopped: cancelled")


def test_an_unknown_function_waits_for_a_worker_that_has_it(worker, server, app, tmp_path):
    made = server.create(delayMs=0, task={"name": "news"}, payload=[[1, 2]])
    worker.says("the function 'news', which this worker does not have: returned for 1 s .1 of 10")
    worker.says("the function 'news', which this worker does not have: returned for 2 s .2 of 10")
    handle = app.handle(made["intentId"])
    assert any("does not know the function 'news'" in entry.note for entry in handle.history().wait())
    source = "from duetime import App, current\napp = App()\n@app.task(name='news')\n"
    (tmp_path / "newer.py").write_text(source + "def news(a: int, b: int) -> int: return current().attempt\n")
    with WorkerProcess(server, target="newer:app", cwd=tmp_path):
        assert handle.result(WAIT_S).wait() == 1, "what was given back cost no attempt"


def lives(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
