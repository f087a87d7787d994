"""The OpenAPI document says what the route table says, completely, and its examples work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import schemathesis

from duetime import errors
from duetime.api.access.auth import Role
from duetime.api.codec.intent_decoder import Composer, Defaults
from duetime.api.http.openapi import EXAMPLES, document
from duetime.api.http.pages import document_routes
from duetime.api.http.router import Parameter, Route
from duetime.api.http.sse import EventStream
from duetime.api.resources.admin import Admin
from duetime.api.resources.admin_routes import admin_routes, bulk_routes, health_routes
from duetime.api.resources.bulk import BulkRoutes
from duetime.api.resources.deliveries import DeliveryRoutes, delivery_routes
from duetime.api.resources.insight import HealthRoutes, InsightRoutes
from duetime.api.resources.intents import Intents
from duetime.api.resources.routes import event_routes, intent_routes
from duetime.api.service import Service
from duetime.wire.intent import Intent, NewIntent, Nothing
from duetime.wire.patterns import FORMS


async def nothing(call: Any) -> None:
    """A handler that is never called."""


def route(**more: Any) -> Route:
    given: dict[str, Any] = {
        "method": "GET", "path": "/x", "handler": nothing, "role": Role.read, "name": "getX", "summary": "X",
        "tag": "Xs", "answers": {200: Intent},
    }  # fmt: skip
    return Route(**{**given, **more})


def operation(**more: Any) -> dict[str, Any]:
    made = route(**more)
    found: dict[str, Any] = document([made])["paths"][made.path][made.method.lower()]
    return found


def all_routes() -> list[Route]:
    """The whole table; nobody stands behind its handlers."""
    none: Any = None
    service = Service(Defaults(), none)
    routes = [
        *intent_routes(Intents(service)),
        *event_routes(EventStream(none, none)),
        *delivery_routes(DeliveryRoutes(none, 1)),
        *bulk_routes(BulkRoutes(service)),
        *admin_routes(Admin(service), InsightRoutes(service, none, none)),
        *health_routes(HealthRoutes(none, none)),
    ]
    return [*routes, *document_routes(routes)]


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return document(all_routes())


def walk(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for each in node.values():
            yield from walk(each)
    elif isinstance(node, list):
        for each in node:
            yield from walk(each)


def test_the_document_is_valid_openapi_3_1(whole):
    assert whole["openapi"] == "3.1.0" and whole["info"]["title"] == "Duetime" and whole["info"]["version"]
    schemathesis.openapi.from_dict(json.loads(json.dumps(whole))).validate()


def test_every_route_is_an_operation(whole):
    found = {
        (method.upper(), path, operation["operationId"])
        for path, methods in whole["paths"].items()
        for method, operation in methods.items()
    }
    assert found == {(route.method, route.path.replace(":path}", "}"), route.name) for route in all_routes()}


def test_every_reference_leads_somewhere(whole):
    references = {node["$ref"] for node in walk(whole) if "$ref" in node}
    assert references
    for reference in references:
        found = whole
        for name in reference.removeprefix("#/").split("/"):
            found = found[name]


def test_every_tag_is_listed(whole):
    used = {tag for methods in whole["paths"].values() for each in methods.values() for tag in each["tags"]}
    assert used == {tag["name"] for tag in whole["tags"]}


def test_names_of_operations_are_unique():
    names = [route.name for route in all_routes()]
    assert len(names) == len(set(names))


def test_any_json_is_any_json(whole):
    payload = whole["components"]["schemas"]["NewIntent"]["properties"]["payload"]
    assert not {"type", "$ref", "anyOf"} & set(payload)


def test_patterns_are_those_of_json_schema(whole):
    patterns = {node["pattern"] for node in walk(whole) if isinstance(node.get("pattern"), str)}
    assert "^[A-Za-z0-9_.:-]+$" in patterns and not any("\\Z" in pattern for pattern in patterns)


class TestErrors:
    def test_every_refusal_is_a_problem_that_generators_of_clients_can_read(self, whole):
        """They know a reference, and `application/problem+json` as JSON; allOf with constants they drop."""
        refusals = [
            (place, method, status, answer["content"]["application/problem+json"]["schema"])
            for place, methods in whole["paths"].items()
            for method, each in methods.items()
            for status, answer in each["responses"].items()
            if status >= "400" and "application/problem+json" in answer["content"]
        ]
        assert len(refusals) > 100
        for *place, schema in refusals:
            assert schema["$ref"] == "#/components/schemas/Problem" and "allOf" not in schema, place

    def test_each_status_has_its_codes(self):
        found = operation(errors=(errors.IdExists, errors.KeyReused, errors.NotReady))["responses"]
        schema = found["409"]["content"]["application/problem+json"]["schema"]
        assert schema["properties"] == {"status": {"const": 409}, "errorCode": {"enum": [40903, 40904]}}
        assert "Retry-After" in found["503"]["headers"] and "Retry-After" not in found["409"]["headers"]

    @pytest.mark.parametrize(
        ("more", "statuses"),
        [
            ({"role": None}, {"400", "403", "413", "500"}),
            ({"role": Role.read}, {"400", "401", "403", "413", "415", "429", "500"}),
            ({"role": Role.admin}, {"400", "401", "403", "413", "415", "429", "500"}),
            ({"role": Role.read, "stream": True}, {"400", "401", "403", "413", "415", "500"}),
            ({"role": None, "parameters": (Parameter("a", "b"),)}, {"400", "403", "413", "500"}),
            ({"role": None, "write": True}, {"400", "403", "409", "413", "422", "500"}),
        ],
    )
    def test_common_errors_are_documented_for_every_route(self, more, statuses):
        assert set(operation(**more)["responses"]) == {"200", *statuses}

    def test_a_status_that_is_an_answer_and_a_refusal(self):
        found = operation(answers={200: Nothing, 503: Nothing}, errors=(errors.NotReady,))["responses"]["503"]
        assert set(found["content"]) == {"application/json", "application/problem+json"}

    def test_every_example_is_a_problem_of_its_code(self, whole):
        for name, example in whole["components"]["examples"].items():
            kind = getattr(errors, name)
            assert example["value"]["errorCode"] == kind.code and example["value"]["status"] == kind.status


def test_one_of_two_answers():
    found = operation(answers={200: Intent | Nothing})["responses"]["200"]["content"]["application/json"]
    assert found["schema"] == {
        "anyOf": [{"$ref": "#/components/schemas/Intent"}, {"$ref": "#/components/schemas/Nothing"}]
    }


def test_parameters():
    found = operation(
        path="/x/{id}/{other}", parameters=(Parameter("a", "b", {"type": "integer"}, "header", True),)
    )["parameters"]
    assert [(each["name"], each["in"], each["required"]) for each in found] == [
        ("id", "path", True), ("other", "path", True), ("a", "header", True),
    ]  # fmt: skip
    assert found[0]["schema"]["maxLength"] == 128


def test_a_path_within_a_path():
    made = route(path="/lanes/{lane:path}/pause")
    assert list(document([made])["paths"]) == ["/lanes/{lane}/pause"]


def test_bodies():
    found = operation(method="POST", body=NewIntent, body_required=False, ndjson=True)["requestBody"]
    assert found["required"] is False
    assert set(found["content"]) == {"application/json", "application/x-ndjson"}
    assert found["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/NewIntent"}


def test_security_follows_the_role():
    assert operation(role=None)["security"] == []
    assert operation(role=Role.submit)["security"] == [{"token": []}, {"bearer": []}]


def test_the_headers_of_answers():
    created = operation(method="POST", answers={201: Intent, 200: Intent}, write=True)["responses"]
    assert set(created["201"]["headers"]) == {"ETag", "Location", "Idempotent-Replayed"}
    assert "Location" not in created["200"]["headers"]


@pytest.mark.parametrize("name", EXAMPLES["createIntent"])
def test_an_example_of_a_new_intent_is_taken(name):
    _, body = EXAMPLES["createIntent"][name]
    new = msgspec.json.decode(json.dumps(body), type=NewIntent)
    composer = Composer(Defaults())
    composer.terms(new)
    composer.item(new, 0, 1_700_000_000_000)


def test_every_example_belongs_to_an_operation_and_fits_its_body():
    bodies = {route.name: route.body for route in all_routes()}
    for name, examples in EXAMPLES.items():
        for _, body in examples.values():
            msgspec.json.decode(json.dumps(body), type=bodies[name])


def within(value: object) -> Iterator[dict[str, Any]]:
    """Every object of a document."""
    if isinstance(value, dict):
        yield value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in children:
        yield from within(each)


def test_every_pattern_has_a_form_that_a_refusal_can_name():
    found = {each["pattern"] for each in within(document(all_routes())) if "pattern" in each}
    assert found and found <= {pattern.replace(r"\Z", "$") for pattern in FORMS}


def test_a_field_of_a_request_with_a_default_is_optional_for_generators(whole):
    """openapi-typescript requires a field that has a default, so defaults are named in words."""
    requests = {
        name: schema
        for name, schema in whole["components"]["schemas"].items()
        if schema.get("additionalProperties") is False
    }
    assert {"NewIntent", "CallbackIn", "ClaimDeliveries", "FailedOutcome"} <= requests.keys()
    fields = [field for schema in requests.values() for field in schema["properties"].values()]
    assert not [field for field in fields if "default" in field]
    method = requests["CallbackIn"]["properties"]["method"]
    assert method["description"] == "HTTP method (default: POST)."
    assert requests["ClaimDeliveries"]["required"] == ["consumer"]


def test_every_enum_has_a_type_and_every_open_object_says_so(whole):
    schemas = list(within(whole["components"]["schemas"]))
    assert not [each for each in schemas if isinstance(each.get("enum"), list) and "type" not in each]
    open_objects = [each for each in schemas if each.get("type") == "object" and "properties" not in each]
    assert open_objects and all("additionalProperties" in each for each in open_objects)
