"""The command: what is wrong is said plainly; several processes, queues and servers; reloading."""

from __future__ import annotations

import os
import re
import signal
import socket
from typing import Any

import pytest

from duetime import Handle
from duetime.api.access import tokens
from duetime.errors import Forbidden
from tests.http.server import ServerProcess
from tests.worker import functions
from tests.worker.process import TARGET, WAIT_S, WorkerProcess


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("nowhere:app", (), "There is no module 'nowhere'"),
        ("functions", (), "'functions' does not name an App"),
        ("tests.worker.functions:nothing", (), "has no 'nothing'"),
        ("tests.worker.functions:tell", (), "is not an App but of type function"),
        (TARGET, ("--queues", "default,emial"), "No function of the app is in the queue 'emial'"),
        (TARGET, ("--queues", ","), "is empty"),
    ],
)
def test_a_wrong_target_is_reported(target, options, words):
    worker = WorkerProcess(target=target, options=options)
    assert worker.wait() == 1
    assert words in worker.words[0] and worker.words[1].startswith("hint: ")
    assert len(worker.words) == 2


@pytest.mark.parametrize("url", ["ftp://x", "http://[", "grpc://localhost", "nonsense"])
def test_a_wrong_address_is_reported(url):
    worker = WorkerProcess(options=("--server", url))
    assert worker.wait() == 1
    assert url in worker.words[0]


def test_a_wrong_token_is_reported(tmp_path):
    right = tokens.new(tmp_path, "worker", "ours")
    reader = tokens.new(tmp_path, "read", "theirs")
    with ServerProcess(tmp_path) as server:
        for token, words in (("nonsense", "refuses this worker"), (reader, "refuses this worker")):
            worker = WorkerProcess(server, options=("--token", token))
            assert worker.wait() == 1
            assert any(words in line for line in worker.words), worker.words
        with WorkerProcess(server, options=("--token", right)) as worker:
            assert worker.stop() == 0


def test_a_token_with_two_roles_takes_deliveries_and_submits(tmp_path):
    both = tokens.new(tmp_path, "worker,submit", "both")
    only = tokens.new(tmp_path, "worker", "only")
    with ServerProcess(tmp_path) as server:
        headers = {"X-Duetime-Token": both}
        assert server.ask("POST", "/v1/admin/lanes/task%3Aheavy/pause", None, headers).status == 403
        functions.app.rewire(server.url, token=both)
        with functions.app, WorkerProcess(server, options=("--token", both)):
            id = functions.chained.schedule(4).wait().result(WAIT_S).wait()
            assert functions.app.handle(id).result(WAIT_S).wait()[0] == 5
        functions.app.rewire(server.url, token=only)
        with functions.app, pytest.raises(Forbidden, match=r"role worker may not do this; it needs submit"):
            functions.add.schedule(1, 2).wait()


def test_a_worker_names_the_place_where_it_looks_for_grpc(tmp_path):
    """With its server down, then up with gRPC on another port, then where the worker looks."""
    with socket.create_server(("127.0.0.1", 0)) as http, socket.create_server(("127.0.0.1", 0)) as grpc:
        ports = [str(each.getsockname()[1]) for each in (http, grpc)]
    url, options = f"http://127.0.0.1:{ports[0]}", ("--server", f"http://127.0.0.1:{ports[0]}", "--grpc-port")
    worker = WorkerProcess(options=(*options, ports[1]))
    try:
        said = rf"No connection to gRPC at grpc://127.0.0.1:{ports[1]} \(unavailable: .*\)\. HTTP at {url}"
        worker.says(f"{said} cannot be reached either\\. Retrying")
        with ServerProcess(tmp_path / "data", "--port", ports[0]):
            worker.says(f"{said} works\\. Is gRPC on another port .--grpc-port")
        with ServerProcess(tmp_path / "data", "--port", ports[0], "--grpc-port", ports[1]):
            worker.ready()
            assert worker.stop() == 0
    finally:
        worker.kill()


def test_only_its_queues(server, app, told):
    with WorkerProcess(server, options=("--queues", "other")):
        waiting = functions.told.schedule(told.address).wait()
        functions.other.schedule(told.address, 0).wait().result(WAIT_S).wait()
        assert waiting.view().wait().attempts == 0


def test_never_more_at_a_time_than_allowed(server, app, told):
    """Two queues ask for four each: more may come than may run."""
    with WorkerProcess(server, options=("--concurrency", "4")):
        handles: list[Handle[Any]] = [*functions.other.schedule_many([(told.address, 0.05)] * 20).wait()]
        handles += functions.work.schedule_many([(told.address, 0.05)] * 20).wait()
        for handle in handles:
            handle.result(WAIT_S).wait()
    now = most = 0
    for each in told.rest():
        if "event" in each:
            now += 1 if each["event"] == "began" else -1
            most = max(most, now)
    assert 1 <= most <= 4


def test_deliveries_beyond_the_concurrency_go_to_other_workers(server, app, told, tmp_path):
    """A worker of one place holds one delivery of each queue, and gives back what it cannot begin."""
    with WorkerProcess(server, options=("--concurrency", "1", "--queues", "default")) as busy:
        functions.held.options(lease="1h").schedule(told.address, str(tmp_path / "go")).wait()
        told.next()
        handles = functions.told.schedule_many([(told.address,)] * 3).wait()
        with WorkerProcess(server):
            for handle in handles:
                handle.result(WAIT_S).wait()
        assert busy.process.poll() is None


def test_several_servers(server, app, told, tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("second") / "data") as second:
        worker = WorkerProcess(server, second)
        worker.says("Connected to", times=2)
        try:
            made = [
                each.create(delayMs=0, task={"name": "once"}, payload=[[told.address]])
                for each in (server, second)
            ]
            assert {told.next()["id"] for _ in made} == {each["intentId"] for each in made}
            assert worker.stop() == 0
        finally:
            worker.kill()


def test_processes_are_watched_over(server, app, told):
    worker = WorkerProcess(server, options=("--processes", "2"))
    try:
        lines = worker.says("Connected to", times=2)
        pids = [int(re.search(r":(\d+)~", line).group(1)) for line in lines]  # type: ignore[union-attr]
        os.kill(pids[0], signal.SIGKILL)
        worker.says("ended with -9; restarted")
        worker.says("Connected to", times=3)
        functions.told.schedule(told.address).wait().result(WAIT_S).wait()
        assert worker.stop() == 0
        worker.says("^Stopped", times=2)
    finally:
        worker.kill()


def test_processes_stop_when_their_supervisor_is_killed(server):
    worker = WorkerProcess(server, options=("--processes", "2"))
    worker.says("Connected to", times=2)
    worker.process.kill()
    worker.says("^Stopped", times=2)
    worker.wait()


def test_reload_restarts_the_worker_when_its_source_changes(server, app, tmp_path):
    source = "from duetime import App\napp = App()\n@app.task(name='add')\n"
    source += "async def add(a: int, b: int) -> list[int]:\n"
    (tmp_path / "mine.py").write_text(source + "    return [a + b]\n")
    worker = WorkerProcess(server, target="mine:app", cwd=tmp_path, options=("--reload",))
    try:
        worker.ready()
        assert functions.add.schedule(2, 3).wait().result(WAIT_S).wait() == [5]
        (tmp_path / "mine.py").write_text("this is no program")
        worker.says("restarted after a change")
        (tmp_path / "mine.py").write_text(source + "    return [a * b]\n")
        worker.says("Connected to", times=2)
        assert functions.add.schedule(2, 3).wait().result(WAIT_S).wait() == [6]
        assert worker.stop() == 0
    finally:
        worker.kill()
