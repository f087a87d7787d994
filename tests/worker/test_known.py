"""Workers tell what they can run: it is listed, and a payload that does not fit is refused at once."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from duetime import Client
from duetime.errors import InvalidField
from duetime.v1 import intents_pb2 as pb
from duetime.v1.stub import DuetimeStub
from tests.worker import functions
from tests.worker.process import WorkerProcess


@pytest.fixture
def client(server):
    with Client(server.url) as client:
        yield client


def known(client) -> dict[str, Any]:
    return {
        each.name if each.entity is None else f"{each.entity}.{each.name}": each
        for each in client.functions().wait().functions
    }


def test_functions_are_listed_with_what_they_take(server, client):
    assert known(client) == {}
    with WorkerProcess(server, options=("--name", "one")):
        found = known(client)
        assert (
            found["add"].queue == "default"
            and found["add"].signature == "(a: 'int', b: 'int') -> 'list[int]'"
        )
        assert found["add"].parameters["prefixItems"][1]["properties"].keys() == {"a", "b"}
        assert found["heavy"].queue == "heavy" and found["Account.deposit"].entity == "Account"
        assert [name.partition("~")[0] for name in found["add"].workers] == ["one"]
    with WorkerProcess(server, options=("--queues", "heavy")):
        assert known(client)["add"].workers == [], "it is remembered"


@pytest.mark.parametrize(
    ("payload", "place", "words"),
    [
        ([[1, "two"]], "$.payload[0][1]", "is not of types"),
        ([[1]], "$.payload", "the argument 'b' is missing"),
        ([[1, 2], {"b": 2}], "$.payload", "the argument 'b' is given twice"),
        ([[1, 2, 3]], "$.payload[0]", "more than 2 items"),
        ([[1], {"c": 2, "b": 2}], "$.payload[1]", "'c' was unexpected"),
        ({"a": 1, "b": 2}, "$.payload", "is not of type"),
        (None, "$.payload", "is missing"),
    ],
)
def test_a_payload_that_does_not_fit_is_refused_with_its_place(listed, client, payload, place, words):
    with pytest.raises(InvalidField) as caught:
        client.create(task={"name": "add"}, payload=payload, delay_ms=0).wait()
    assert caught.value.code == 42208 and caught.value.status == 422
    assert words in caught.value.message and f"at {place}." in caught.value.message
    assert caught.value.details["path"] == place


@pytest.fixture
def listed(server):
    """A server whose workers have told what they can run, and are gone."""
    with WorkerProcess(server):
        pass


def test_each_of_a_batch_is_judged_alone(listed, client):
    right = {"task": {"name": "add"}, "payload": [[1, 2]], "delay_ms": 60_000}
    batch = client.create_many([right, right | {"payload": [[1, None]]}, right]).wait()
    assert [each.status for each in batch.items] == [201, 422, 201]
    assert batch.items[1].error is not None and batch.items[1].error.error_code == 42208


def test_grpc_says_the_same(listed, server):
    async def main() -> None:
        async with grpc.aio.insecure_channel(server.grpc.removeprefix("grpc://")) as channel:
            new = pb.NewIntent(delay_ms=0, payload=b'[["x", 2]]', task=pb.Task(name="add"))
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await DuetimeStub(channel).Create(pb.CreateRequest(intent=new))
            assert dict(caught.value.trailing_metadata() or ())["duetime-error-code"] == "42208"

    asyncio.run(main())


def test_schedules_patches_and_messages_to_entities_are_checked_too(listed, client):
    with pytest.raises(InvalidField, match=r"does not fit Account\.deposit"):
        entity = {"type": "Account", "id": "7", "message": "deposit"}
        client.create(entity=entity, payload=[["here", "not a number"]], delay_ms=0).wait()
    made = client.create(task={"name": "add"}, payload=[[1, 2]], delay_ms=60_000).wait()
    with pytest.raises(InvalidField, match="does not fit add"):
        client.patch(made.intent_id, payload=[["x", 2]]).wait()
    with pytest.raises(InvalidField, match="does not fit add"):
        client.schedules.put("s", every_ms=1_000, intent={"task": {"name": "add"}, "payload": []}).wait()


def test_an_intent_of_an_unlisted_function_is_accepted(listed, client):
    made = client.create(task={"name": "nobody", "queue": "away"}, payload={"any": 1}, delay_ms=0).wait()
    assert made.intent_id


def test_payloads_are_not_checked_if_workers_announce_different_schemas(server, client, tmp_path):
    source = (
        "from duetime import App\napp = App()\n@app.task(name='add')\nasync def add(a: str) -> None: ...\n"
    )
    (tmp_path / "newer.py").write_text(source)
    with WorkerProcess(server) as old:
        with WorkerProcess(server, target="newer:app", cwd=tmp_path):
            assert known(client)["add"].parameters is None
            client.create(task={"name": "add"}, payload=[["text"]], delay_ms=60_000).wait()
        old.kill()
    with WorkerProcess(server, target="newer:app", cwd=tmp_path), pytest.raises(InvalidField):
        client.create(task={"name": "add"}, payload=[[1, 2]], delay_ms=60_000).wait()


def test_payloads_encoded_by_the_app_are_accepted(server, app):
    with WorkerProcess(server):
        assert functions.add.schedule(1, b=True).wait().result(timeout="30s").wait()[0] == 2
