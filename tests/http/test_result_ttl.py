"""How long a result is shown over HTTP."""

from __future__ import annotations

import pytest

from duetime.errors import ResultGone
from tests.http.checks import problem
from tests.worker import functions
from tests.worker.process import WorkerProcess
from tests.worker.waiting import ServerClock


def test_a_result_ttl_is_stored_and_shown(server):
    made = server.create(stream={"name": "x"}, delayMs=60_000, resultTtlMs=5_000)
    assert made["resultTtlMs"] == 5_000 and made["resultGone"] is False
    assert server.create(stream={"name": "x"}, delayMs=60_000)["resultTtlMs"] is None


@pytest.mark.parametrize("wrong", [0, -1, "1s", 10**15])
def test_an_invalid_result_ttl_is_refused(server, wrong):
    body = {"stream": {"name": "x"}, "delayMs": 60_000, "resultTtlMs": wrong}
    problem(server.ask("POST", "/v1/intents", body), 42208)


def test_a_result_is_gone_after_its_time(server, hooks):
    functions.app.rewire(server.url)
    with functions.app, WorkerProcess(server):
        handle = functions.add.options(result_ttl="1s").schedule(1, 2).wait()
        assert handle.view().wait().result_ttl_ms == 1_000
        handle.result().wait()
        ServerClock(server, hooks).advance(1_000)
        shown = server.ask("GET", f"/v1/intents/{handle.id}").json
        assert shown["resultGone"] and shown["status"] == "ACKED" and shown["result"] is None
        listed = server.ask("GET", "/v1/intents?status=ACKED").json["items"]
        assert [each["result"] for each in listed if each["intentId"] == handle.id] == [None]
        with pytest.raises(ResultGone):
            handle.result().wait()
