"""Starting and stopping: SIGTERM finishes what is under way, kill loses nothing, the port answers early."""

from __future__ import annotations

import signal
import socket
import threading
import urllib.error

import pytest

from tests.http.server import ServerProcess


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_with_exit_code_0(tmp_path, number):
    server = ServerProcess(tmp_path / "data").start()
    id = server.create()["intentId"]
    server.signal(number)
    assert server.wait(30) == 0
    assert not [line for line in server.words if "Traceback" in line or "ERROR" in line]
    server.start()
    assert server.ask("GET", f"/v1/intents/{id}").status == 200
    assert server.stop() == 0


def test_a_running_delivery_is_finished(tmp_path, hooks, fresh):
    id = fresh()
    url = hooks.hold(id)
    with ServerProcess(tmp_path / "data") as server:
        server.create(intentId=id, delayMs=0, callback={"url": url})
        hooks.take(id)
        server.signal(signal.SIGTERM)
        hooks.let_go(id)
        assert server.wait(30) == 0
        server.start()
        shown = server.ask("GET", f"/v1/intents/{id}").json
        assert shown["status"] == "ACKED" and shown["delivery"] == 1
        assert hooks.count(id) == 0, "it is not delivered again"


def test_a_delivery_that_takes_too_long_is_returned(tmp_path, hooks, fresh):
    id = fresh()
    url = hooks.hold(id)
    with ServerProcess(tmp_path / "data", engine__drain_ms=300) as server:
        server.create(intentId=id, delayMs=0, callback={"url": url})
        hooks.take(id)
        assert server.stop() == 0
        hooks.let_go(id)
        server.start()
        assert hooks.take(id).json["delivery"] == 2


def test_a_second_signal_stops_at_once(tmp_path, hooks, fresh):
    id = fresh()
    url = hooks.hold(id)
    with ServerProcess(tmp_path / "data") as server:
        server.create(intentId=id, delayMs=0, callback={"url": url})
        hooks.take(id)
        server.signal(signal.SIGTERM)
        server.signal(signal.SIGINT)
        assert server.wait(20) != 0


def test_a_stopping_server_refuses_new_work(tmp_path, hooks, fresh):
    """A refusal or a closed door: never a 201 for something that is lost."""
    id = fresh()
    url = hooks.hold(id)
    made, unexpected = [], []
    with ServerProcess(tmp_path / "data") as server:
        server.create(intentId=id, delayMs=0, callback={"url": url})
        hooks.take(id)
        stopping = threading.Event()

        def create():
            while True:
                try:
                    answer = server.ask(
                        "POST", "/v1/intents", {"delayMs": 9_000_000, "stream": {"name": "n"}}
                    )
                except (urllib.error.URLError, ConnectionError):
                    return
                if answer.status == 201:
                    made.append(answer.json["intentId"])
                elif answer.status != 503:
                    unexpected.append(answer)
                if len(made) > 20:
                    stopping.set()

        thread = threading.Thread(target=create)
        thread.start()
        assert stopping.wait(20)
        server.signal(signal.SIGTERM)
        hooks.let_go(id)
        assert server.wait(30) == 0
        thread.join(30)
        server.start()
        assert not unexpected
        assert all(server.ask("GET", f"/v1/intents/{each}").status == 200 for each in made)


def test_durable_answers_survive_a_kill(tmp_path):
    with ServerProcess(tmp_path / "data") as server:
        ids = [server.create(ackLevel="DURABLE", payload=number)["intentId"] for number in range(20)]
        server.ask("POST", f"/v1/intents/{ids[0]}/cancel")
        server.kill()
        server.start()
        shown = [server.ask("GET", f"/v1/intents/{id}").json for id in ids]
        assert [each["payload"] for each in shown] == list(range(20))
        assert [each["status"] for each in shown] == ["CANCELED"] + ["SCHEDULED"] * 19


def test_two_servers_do_not_share_a_folder(tmp_path):
    with ServerProcess(tmp_path / "data") as server:
        with pytest.raises(AssertionError, match="is held by process"):
            ServerProcess(tmp_path / "data").start()
        assert server.ask("GET", "/openapi.json").status == 200


def test_a_port_that_is_in_use_is_named_in_the_error(tmp_path, server):
    port = server.url.rsplit(":", 1)[1]
    with pytest.raises(AssertionError, match="cannot be used"):
        ServerProcess(tmp_path / "data", "--port", port).start()


def test_the_port_answers_before_recovery_is_done(tmp_path):
    """Not ready, with the reason; nothing is refused for good and nothing is answered wrongly."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    server = ServerProcess(tmp_path / "data", "--port", port, store__checkpoint_ms=3_600_000)
    with server:
        url = server.url
        for start in range(0, 40_000, 10_000):
            news = [{"delayMs": 9_000_000 + n, "stream": {"name": "n"}, "payload": n} for n in range(10_000)]
            assert server.ask("POST", "/v1/intents/batch", news).json["created"] == 10_000, start
        id = server.create()["intentId"]
        server.kill()
        starting = threading.Thread(target=server.start)
        starting.start()
        server.url = url
        answers = _until_ready(server, id)
        starting.join(60)
    early = [(ready, read) for ready, read in answers if ready.status == 503]
    assert early, "it was ready before it could be asked"
    for ready, read in early:
        assert ready.json["ready"] is False and ready.json["reasons"]
        assert read.status == 200 or read.json["errorCode"] == 50304
    assert answers[-1][1].status == 200


def _until_ready(server, id):
    """What it says about itself and about an intent, until it says that it is ready."""
    answers = []
    ready = None
    while ready is None or ready.status != 200:
        try:
            ready = server.ask("GET", "/health/ready")
            answers.append((ready, server.ask("GET", f"/v1/intents/{id}")))
        except (urllib.error.URLError, ConnectionError):
            assert len(answers) == 0, "once it answers, it goes on answering"
    return answers
