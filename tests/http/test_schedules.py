"""Schedules over HTTP, by the client, by an App on a server and on the command line."""

from __future__ import annotations

import json

import pytest

from duetime import App
from duetime.cli import main as cli
from duetime.cli.main import main
from duetime.client.http.client import Client
from duetime.errors import NoSuchSchedule, RevisionMoved
from duetime.timefmt import moment_of
from duetime.wire.intent import TaskTarget
from tests.http.checks import problem
from tests.http.listener import Listener

HOURLY = {"everyMs": 3_600_000, "intent": {"stream": {"name": "n"}, "payload": {"a": 1}}}


@pytest.fixture
def id(fresh):
    return fresh()


def put(server, id, body=HOURLY, **headers):
    return server.ask("PUT", f"/v1/schedules/{id}", body, headers)


def test_put_get_list_delete(server, id):
    body = {
        "cron": "0 9 * * MON-FRI", "zone": "Europe/Paris", "jitterMs": 500, "start": "2030-01-01T00:00:00Z",
        "end": "2031-01-01T00:00:00Z", "overlap": "QUEUE_ONE", "misfire": "CATCH_UP", "catchUp": 3,
        "intent": {"task": {"name": "t", "queue": "q"}, "payload": [1], "precisionTier": "fast",
                   "tags": {"k": "v"}, "redelivery": {"maxAttempts": 2}},
    }  # fmt: skip
    made = put(server, id, body)
    assert made.status == 200 and made.headers["etag"] == '"1"'
    shown = made.json
    for name in ("cron", "zone", "jitterMs", "overlap", "misfire", "catchUp"):
        assert shown[name] == body[name]
    assert (shown["start"], shown["nextAt"]) == ("2030-01-01T00:00:00.000Z", "2030-01-01T08:00:00.000Z")
    assert (shown["everyMs"], shown["lastAt"], shown["paused"]) == (None, None, False)
    intent = shown["intent"]
    assert intent["task"] == {"name": "t", "queue": "q"} and intent["payload"] == [1]
    assert (intent["precisionTier"], intent["tags"]) == ("FAST", {"k": "v"})
    assert server.ask("GET", f"/v1/schedules/{id}").json == shown
    assert shown in server.ask("GET", "/v1/schedules").json["schedules"]
    assert server.ask("DELETE", f"/v1/schedules/{id}").json == shown
    problem(server.ask("GET", f"/v1/schedules/{id}"), 40403)
    problem(server.ask("DELETE", f"/v1/schedules/{id}"), 40403)


def test_the_same_again_changes_nothing_and_a_stale_change_is_refused(server, id):
    first = put(server, id).json
    assert put(server, id).json == first
    second = put(server, id, {**HOURLY, "everyMs": 7_200_000}, **{"If-Match": '"1"'}).json
    assert (second["revision"], second["everyMs"]) == (2, 7_200_000)
    problem(put(server, id, HOURLY, **{"X-Duetime-Expected-Revision": "1"}), 40902)
    problem(server.ask("POST", f"/v1/schedules/{id}/pause", headers={"If-Match": '"1"'}), 40902)


def test_pause_resume_next_and_trigger(server, id):
    put(server, id)
    times = server.ask("GET", f"/v1/schedules/{id}/next?count=3").json["times"]
    assert len(times) == 3 and times[0].endswith(":00:00.000Z")
    paused = server.ask("POST", f"/v1/schedules/{id}/pause").json
    assert paused["paused"] and paused["nextAt"] is None
    assert server.ask("GET", f"/v1/schedules/{id}/next").json["times"] == []
    triggered = server.ask("POST", f"/v1/schedules/{id}/trigger")
    assert triggered.status == 201 and triggered.json["payload"] == {"a": 1}
    name = triggered.json["intentId"]
    assert name.startswith(f"{id}@now-")
    assert server.ask("GET", f"/v1/intents/{name}").json["status"] in ("SCHEDULED", "DUE")
    after = {"delayMs": 0, "stream": {"name": "n"}, "after": [name]}
    assert server.ask("POST", "/v1/intents", after).json["status"] == "BLOCKED"
    resumed = server.ask("POST", f"/v1/schedules/{id}/resume").json
    assert resumed["nextAt"] == times[0] and resumed["revision"] == 3
    problem(server.ask("GET", f"/v1/schedules/{id}/next?count=0"), 40002)
    problem(server.ask("POST", f"/v1/schedules/{id}x/trigger"), 40403)


def test_a_schedule_creates_intents(server, id):
    with Listener(server) as events:
        shown = put(server, id, {"everyMs": 1_000, "intent": {"stream": {"name": id}}}).json
        events.until(lambda seen: seen.data.get("intentId", "").startswith(f"{id}@"))
        server.ask("DELETE", f"/v1/schedules/{id}")
    assert shown["nextAt"] is not None


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"everyMs": None}, 42208),
        ({"cron": "* * * * *"}, 42208),
        ({"everyMs": 999}, 42208),
        ({"everyMs": None, "cron": "never"}, 42208),
        ({"everyMs": None, "cron": "* * * * *", "zone": "Mars/Base"}, 42208),
        ({"start": "2031-01-01T00:00Z", "end": "2030-01-01T00:00Z"}, 42208),
        ({"catchUp": 0}, 42208),
        ({"overlap": "MAYBE"}, 42208),
        ({"intent": {}}, 42209),
        ({"intent": {"stream": {"name": "n"}, "delayMs": 5}}, 42208),
        ({"intent": {"stream": {"name": "n"}, "payload": "x" * 20_000}}, 42208),
    ],
)
def test_invalid_schedules_are_refused(server, id, change, code):
    problem(put(server, id, {**HOURLY, **change}), code)
    problem(server.ask("GET", f"/v1/schedules/{id}"), 40403)


def test_an_id_that_is_none(server):
    problem(put(server, "a@b"), 42208)
    problem(put(server, "x" * 97), 42208)


def test_a_schedule_survives_a_restart(tmp_path, id):
    from tests.http.server import ServerProcess

    with ServerProcess(tmp_path / "data") as server:
        shown = put(server, id).json
        assert server.stop() == 0
        server.start()
        assert server.ask("GET", f"/v1/schedules/{id}").json == shown


def test_the_client(server, id):
    with Client(server.url) as client:
        made = client.schedules.put(
            id, every_ms=3_600_000, jitter_ms=10, intent={"task": {"name": "t"}, "timeout_ms": 5}
        ).wait()
        assert made.intent.task is not None and made.intent.timeout_ms == 5
        assert client.schedules.get(id).wait() == made
        assert made in client.schedules.list().wait()
        assert len(client.schedules.next(id, 2).wait()) == 2
        assert client.schedules.pause(id).wait().paused
        assert not client.schedules.resume(id).wait().paused
        assert client.schedules.trigger(id).wait().intent_id.startswith(f"{id}@")
        stream = {"stream": {"name": "n"}}
        with pytest.raises(RevisionMoved):
            client.schedules.put(id, cron="* * * * *", intent=stream, expected_revision=1).wait()
        client.schedules.delete(id).wait()
        with pytest.raises(NoSuchSchedule):
            client.schedules.get(id).wait()


def test_an_app_on_a_server_puts_its_rules(server, id):
    app = App(server.url)

    @app.cron("0 9 * * *", zone="Europe/Paris", id=id, overlap="skip", args=(1,), start=1_900_000_000)
    @app.task(name=f"work-{id}", retry=None, tags={"a": "b"})  # others share this server
    def work(a: int) -> None: ...

    with app:
        table = app.schedules.get(id).wait()
        assert (table.cron, table.zone, table.overlap, table.source) == (
            "0 9 * * *",
            "Europe/Paris",
            "SKIP",
            "app",
        )
        assert table.start == moment_of(1_900_000_000_000)
        assert table.intent.task == TaskTarget(name=work.name) and table.intent.tags == {"a": "b"}
        assert [each.id for each in app.schedules.list().wait() if each.id == id] == [id]
        assert app.schedules.next(id, 1).wait()[0].hour in (7, 8)
        assert app.schedules.trigger(id).wait().payload == table.intent.payload == [[1]]
        assert app.schedules.pause(id).wait().paused
        assert not app.schedules.resume(id).wait().paused
        app.schedules.delete(id).wait()


def test_the_command_line(server, id, capsys):
    def run(*words, code=0):
        assert cli.main(["schedules", *words, "--url", server.url]) == code
        return capsys.readouterr().out

    shown = run(
        "put", id, "task:t@q", "--cron", "0 9 * * *", "--zone", "Europe/Paris",
        "--start", "2030-01-01T00:00Z", "--end", "2040-01-01T00:00Z", "--overlap", "queue-one",
        "--misfire", "catch_up",
        "--catch-up", "2", "--jitter", "5s", "--payload", "[1]", "--tag", "a=b",
        "--tier", "fast", "--attempts", "2",
    )  # fmt: skip
    assert "0 9 * * * (Europe/Paris)" in shown and "QUEUE_ONE" in shown and "task:t@q" in shown
    assert "2030-01-01T08:00" in run("show", id)
    assert json.loads(run("show", id, "--json"))["jitterMs"] == 5000
    assert id in run("list")
    assert id in {each["id"] for each in json.loads(run("list", "--json"))["schedules"]}
    assert run("next", id, "-n", "2").startswith("2030-01-01T08:00")
    assert len(json.loads(run("next", id, "--json"))) == 5
    assert "paused" in run("pause", id)
    assert "paused" in run("list")
    assert "2030-01-01" in run("resume", id)
    assert run("trigger", id).startswith(f"{id}@now-")
    assert json.loads(run("trigger", id, "--json"))["intentId"].startswith(f"{id}@now-")
    assert "every 5m" in run("put", id, "stream:s", "--every", "5m").replace("5 min", "5m")
    run("put", id, "stream:s", code=2)
    run("delete", id)
    run("show", id, code=1)


def test_the_command_line_prints_schedules_as_they_were_sent(server, id, capsys):
    options = ["--every", "1h", "--lease", "5s", "--limit", "t=20/s,3", "--json", "--url", server.url]
    assert main(["schedules", "put", id, "task:x", *options]) == 0
    put = json.loads(capsys.readouterr().out)
    assert put["intent"]["leaseMs"] == 5_000
    assert put["intent"]["limits"] == [{"key": "t", "rate": "20/s", "burst": 1, "concurrency": 3}]
    assert main(["schedules", "list", "--json", "--url", server.url]) == 0
    assert put in json.loads(capsys.readouterr().out)["schedules"]
    assert main(["schedules", "list", "--url", server.url]) == 0
    assert id in capsys.readouterr().out
