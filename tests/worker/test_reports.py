"""What running functions say of themselves reaches whoever looks: how far they are, and what they log."""

from __future__ import annotations

import subprocess
import sys

import pytest

from duetime import Client, Retry
from duetime.errors import NotAcked
from tests.e2e.process import environment
from tests.worker import functions
from tests.worker.process import WorkerProcess
from tests.worker.waiting import until


@pytest.fixture
def worker(server):
    with WorkerProcess(server) as worker:
        yield worker


def words(progress) -> tuple[float, float | None, str] | None:
    return None if progress is None else (progress.done, progress.total, progress.note)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (functions.far, (1, 1, "step 1")),
        (functions.thread_far, (0.5, None, "half")),
        (functions.process_far, (2, 3, "in a process")),
    ],
    ids=["coroutine", "thread", "process"],
)
def test_progress_is_shown_while_a_function_runs(worker, server, app, told, tmp_path, function, said):
    handle = function.schedule(told.address, str(tmp_path / "go")).wait()
    told.next()
    until(lambda: words(handle.view().wait().progress) == said)
    with Client(server.url) as client:
        assert words(client.get(handle.id).wait().progress) == said
    (tmp_path / "go").touch()
    handle.result(timeout="30s").wait()
    assert handle.view().wait().progress is None, "it is over"


def test_many_progress_reports_are_sent_as_few_messages(worker, server, app, told, tmp_path):
    """A hundred thousand words: the newest is shown, and the function was not held up."""
    handle = functions.far.schedule(told.address, str(tmp_path / "go"), 100_000).wait()
    told.next()
    until(lambda: words(handle.view().wait().progress) == (100_000, 100_000, "step 100000"))
    (tmp_path / "go").touch()
    handle.result(timeout="30s").wait()


@pytest.mark.parametrize(
    ("function", "lines"),
    [
        (functions.talks, ["INFO functions: first x", "WARNING functions: then x"]),
        (functions.thread_talks, ["INFO functions: in a thread: x"]),
        (functions.process_talks, ["WARNING functions: in a process: x"]),
    ],
    ids=["coroutine", "thread", "process"],
)
def test_log_lines_of_a_function_are_kept_with_its_intent(worker, app, function, lines):
    handle = function.schedule("x").wait()
    handle.result(timeout="30s").wait()
    kept = handle.logs().wait()
    assert [line.split(" ", 1)[1] for line in kept] == lines
    assert all(line.split(" ", 1)[0].endswith("Z") for line in kept), "times are those of the world"


def test_each_log_line_of_a_function_is_one_line_of_the_workers_log(worker, app):
    forged = "x\n2030-01-01 00:00:00,000 INFO duetime: forged\x1b[2J\u202e"
    functions.thread_talks.schedule(forged).wait().result(timeout="30s").wait()
    (line,) = worker.says("forged")
    assert line.endswith(r"in a thread: x\n2030-01-01 00:00:00,000 INFO duetime: forged\x1b[2J\u202e")


def test_log_lines_of_concurrent_functions_are_kept_separately(worker, app):
    handles = [functions.talks.schedule(f"n{number}").wait() for number in range(20)]
    for number, handle in enumerate(handles):
        handle.result(timeout="30s").wait()
        assert [line.rsplit(" ", 1)[1] for line in handle.logs().wait()] == [f"n{number}"] * 2


def test_the_newest_attempt_counts_and_a_failure_has_its_traceback(worker, app, server):
    handle = functions.talks.options(retry=Retry(max_attempts=1)).schedule("fail").wait()
    with pytest.raises(NotAcked):
        handle.result(timeout="30s").wait()
    kept = "\n".join(handle.logs().wait())
    assert "first fail" in kept and "Traceback" in kept and "ValueError: not this time" in kept
    again = functions.talks.schedule("fail").wait()
    again.result(timeout="30s").wait()
    assert "Traceback" not in "\n".join(again.logs().wait())


def test_a_function_that_logs_nothing_keeps_nothing(worker, app):
    handle = functions.add.schedule(1, 2).wait()
    handle.result(timeout="30s").wait()
    assert handle.logs().wait() == []


def test_logs_can_be_switched_off(server, app):
    with WorkerProcess(server, options=("--no-logs",)):
        for function in (functions.talks, functions.process_talks):
            handle = function.schedule("x").wait()
            handle.result(timeout="30s").wait()
            assert handle.logs().wait() == []


def said(server, *words: str) -> str:
    """What a command prints."""
    command = [sys.executable, "-m", "duetime", *words, "--url", server.url]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_line_shows_it(worker, server, app, told, tmp_path):
    handle = functions.far.schedule(told.address, str(tmp_path / "go")).wait()
    told.next()
    until(lambda: handle.view().wait().progress)
    assert "1 of 1 (100 %), step 1, at 2" in said(server, "get", handle.id)
    (tmp_path / "go").touch()
    talked = functions.talks.schedule("x").wait()
    talked.result(timeout="30s").wait()
    assert "INFO functions: first x\n" in said(server, "logs", talked.id)
    assert '"lines":' in said(server, "logs", talked.id, "--json")
    listed = said(server, "functions")
    assert "Account.deposit" in listed and "thread_far" in listed
    assert '"parameters":' in said(server, "functions", "--json")
