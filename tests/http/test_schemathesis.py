"""Every operation of the OpenAPI document is asked with made-up requests, good and bad: the server answers
only what the document says, in the shape it says, and never with a 5xx."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi import checks as openapi_checks

from tests.http.server import ServerProcess
from tests.http.test_auth import make_token

OPERATIONS = (
    "createIntent", "createIntents", "listIntents", "getIntent", "patchIntent", "getHistory", "getWhy",
    "cancelIntent", "fireIntentNow", "reviveIntent", "getEvents", "listDeadLetters", "reviveDeadLetters",
    "listSchedules", "getSchedule", "putSchedule", "deleteSchedule", "getNextTicks", "pauseSchedule",
    "resumeSchedule", "triggerSchedule", "createGroup", "getGroup", "addMembers", "getParents",
    "purgeDeadLetters", "getChronoscope", "listLanes", "pauseLane", "resumeLane", "setLane", "resizeTier",
    "listSegments", "getMetrics", "getHealth", "getLive", "getReady", "getDeepHealth", "getOpenApi",
    "getDocs", "getHome", "getTimeline", "getReplay", "getLogs", "listFunctions",
    "getAutoscale", "getPredictions", "claimFromQueue", "settleForQueue", "extendForQueue",
    "claimFromStream", "settleForStream", "extendForStream", "claimFromEntityType", "settleForEntityType",
    "extendForEntityType", "cancelIntents", "ownSchedules", "backfillSchedule",
)  # fmt: skip
USUAL, MANY = 18, 100
CHECKS = [
    schemathesis.checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
]
TARGETS: dict[str, Any] = {
    "callback": {"url": "http://127.0.0.1:9/"},
    "task": {"name": "t"},
    "entity": {"type": "e", "id": "1", "message": "m"},
    "stream": {"name": "s"},
}


class Api:
    """A guarded server, its document, and intents to ask about."""

    def __init__(self, server: ServerProcess, token: str) -> None:
        self.server = server
        self.headers = {"X-Duetime-Token": token}
        self.session = requests.Session()
        self.document: Any = server.ask("GET", "/openapi.json").json
        schema: Any = schemathesis.openapi.from_dict(self.document)
        schema.config.update(base_url=server.url)
        self.schema = schema
        self.asked = 0

    def known_id(self, number: int) -> str:
        """An intent that is there: waiting, or cancelled."""
        body: Any = {"delayMs": 3_600_000, "stream": {"name": "s"}, "intentId": f"known-{number}"}
        self.session.post(f"{self.server.url}/v1/intents", json=body, headers=self.headers)
        return f"known-{number}"


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schemathesis") / "data"
    token = make_token(folder, "admin")
    with ServerProcess(folder) as server:
        api = Api(server, token)
        yield api
        api.session.close()
        assert not [line for line in server.words if "Traceback" in line], "\n".join(server.words[-40:])


@schemathesis.serializer("application/x-ndjson")
def _ndjson(ctx: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


def aim(api: Api, case: Case, number: int) -> None:
    """Most of the made-up requests are turned into ones that get further: a known intent, one target."""
    if number % 8:  # made-up tokens get nowhere
        for name in [
            name for name in case.headers or {} if name.lower() in ("authorization", "x-duetime-token")
        ]:
            del case.headers[name]
    parameters: Any = case.path_parameters
    if number % 2 and parameters and "id" in parameters:
        parameters["id"] = api.known_id(number)
    if number % 2 and case.operation.definition.raw["operationId"].endswith("Schedule"):
        parameters["id"] = f"s{number % 3}"
    if number % 2 and parameters and "tier" in parameters:
        parameters["tier"] = "FAST"
    if number % 2 and parameters and "lane" in parameters:
        parameters["lane"] = "task:x"
    if isinstance(case.body, dict) and isinstance(wait_ms := case.body.get("waitMs"), int):
        case.body["waitMs"] = min(wait_ms, 20)
    news = case.body if isinstance(case.body, list) else [case.body]
    if number % 2 and case.operation.definition.raw["operationId"].startswith("createIntent"):
        for new in news:
            if isinstance(new, dict):
                kept = list(TARGETS)[number // 2 % 4]
                for name in (*TARGETS, "executeAt", "delayMs"):
                    new.pop(name, None)
                new |= {kept: TARGETS[kept], "delayMs": number * 100_000}


def ask(api: Api, case: Case) -> None:
    api.asked += 1
    if case.operation.definition.raw.get("x-stream"):
        listen(api, case)
        return
    response = case.call(base_url=api.server.url, headers=api.headers, session=api.session, timeout=30)
    case.validate_response(response, checks=CHECKS)


def listen(api: Api, case: Case) -> None:
    """A stream does not end: its status and type are looked at, and a refusal's body."""
    kwargs = case.as_transport_kwargs(base_url=api.server.url, headers=api.headers)
    kwargs.pop("stream", None)
    with requests.Session() as session, session.request(**kwargs, stream=True, timeout=30) as response:
        responses = case.operation.definition.raw["responses"]
        assert str(response.status_code) in responses and response.status_code < 500
        media_type = response.headers["content-type"].partition(";")[0]
        assert media_type in responses[str(response.status_code)]["content"]
        if response.status_code != 200:
            assert json.loads(response.content)["status"] == response.status_code


def run(api: Api, operation_id: str, examples: int) -> None:
    operation = api.schema.find_operation_by_id(operation_id)
    modes = [GenerationMode.POSITIVE]
    if operation.definition.raw["parameters"] or "requestBody" in operation.definition.raw:
        modes.append(GenerationMode.NEGATIVE)

    @settings(
        max_examples=examples, deadline=None, database=None, derandomize=True,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=st.one_of(*(operation.as_strategy(mode) for mode in modes)), number=st.integers(0, 15))
    def every(case: Case, number: int) -> None:
        aim(api, case, number)
        ask(api, case)

    every()


def test_every_operation_is_asked(api):
    found = {
        operation["operationId"]
        for methods in api.document["paths"].values()
        for operation in methods.values()
    }
    assert found == set(OPERATIONS)


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_only_what_the_document_says(api, operation_id):
    before = api.asked
    run(api, operation_id, USUAL)
    assert api.asked > before


@pytest.mark.slow
def test_the_same_many_times(api):
    before = api.asked
    failures = {}
    for operation_id in OPERATIONS:
        try:
            run(api, operation_id, MANY)
        except Exception as error:  # all of them are wanted, not only the first
            failures[operation_id] = error
    assert not failures, failures
    assert api.asked - before >= 2_000


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_no_token_no_answer(api, operation_id):
    """What the document calls secured is, whatever is asked."""
    methods = {
        operation["operationId"]: (method, path, operation)
        for path, paths in api.document["paths"].items()
        for method, operation in paths.items()
    }
    method, path, operation = methods[operation_id]
    path = path.replace("{id}", "x").replace("{lane}", "task:x").replace("{tier}", "FAST")
    for name in ("queue", "stream", "type"):
        path = path.replace(f"{{{name}}}", "x")
    answer = api.server.ask(method.upper(), path)
    assert (answer.status == 401) == bool(operation["security"])
