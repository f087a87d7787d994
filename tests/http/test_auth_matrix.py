"""Every route and call by every identity: the role each needs, and what the server answers.

The tables below say who may; the routes come from the server itself. A route without a row fails.
"""

from __future__ import annotations

import asyncio
import http.client
import json
from typing import Any
from urllib.parse import unquote, urlsplit

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from duetime import serving
from duetime.api.access import tokens
from duetime.api.http.router import Router
from duetime.config import Config
from duetime.settings import DataSettings
from duetime.v1 import duetime_pb2
from tests.grpc.subscriber import channel_to, metadata
from tests.http.server import ServerProcess

# The role that each route needs; "open": nobody needs a token. HEAD needs what GET needs.
ROUTES = """
open    GET     /
open    GET     /docs
open    GET     /openapi.json
open    GET     /health
open    GET     /health/live
open    GET     /health/ready
open    GET     /health/deep
read    GET     /metrics
read    GET     /v1/events
read    GET     /v1/intents
submit  POST    /v1/intents
submit  POST    /v1/intents/batch
submit  POST    /v1/intents/cancel
read    GET     /v1/intents/{id}
submit  PATCH   /v1/intents/{id}
read    GET     /v1/intents/{id}/history
read    GET     /v1/intents/{id}/logs
read    GET     /v1/intents/{id}/parents
read    GET     /v1/intents/{id}/why
submit  POST    /v1/intents/{id}/cancel
submit  POST    /v1/intents/{id}/fire-now
submit  POST    /v1/intents/{id}/revive
submit  POST    /v1/groups
read    GET     /v1/groups/{id}
submit  POST    /v1/groups/{id}/members
read    GET     /v1/schedules
read    GET     /v1/schedules/{id}
submit  PUT     /v1/schedules/{id}
submit  DELETE  /v1/schedules/{id}
read    GET     /v1/schedules/{id}/next
submit  POST    /v1/schedules/{id}/pause
submit  POST    /v1/schedules/{id}/resume
submit  POST    /v1/schedules/{id}/trigger
submit  POST    /v1/schedules/{id}/backfill
submit  POST    /v1/schedules/owned
worker  POST    /v1/queues/{queue}/claim
worker  POST    /v1/queues/{queue}/settle
worker  POST    /v1/queues/{queue}/extend
worker  POST    /v1/streams/{stream}/claim
worker  POST    /v1/streams/{stream}/settle
worker  POST    /v1/streams/{stream}/extend
worker  POST    /v1/entities/{type}/claim
worker  POST    /v1/entities/{type}/settle
worker  POST    /v1/entities/{type}/extend
read    GET     /v1/admin/dead-letters
admin   POST    /v1/admin/dead-letters/revive
admin   POST    /v1/admin/dead-letters/purge
read    GET     /v1/admin/chronoscope
read    GET     /v1/admin/functions
read    GET     /v1/admin/lanes
admin   PATCH   /v1/admin/lanes/{lane:path}
admin   POST    /v1/admin/lanes/{lane:path}/pause
admin   POST    /v1/admin/lanes/{lane:path}/resume
admin   PATCH   /v1/admin/tiers/{tier}
read    GET     /v1/admin/timeline
read    GET     /v1/admin/predictions
read    GET     /v1/admin/autoscale
read    GET     /v1/admin/replay
read    GET     /v1/admin/log/segments
"""
CALLS = """
submit  Create
submit  CreateBatch
read    Get
read    List
submit  Patch
submit  Cancel
submit  FireNow
submit  Revive
open    Health
read    WatchIntents
worker  Deliveries
"""
# Which roles may do what needs a role. Whoever is not named in a row gets 403, without a good token 401.
MAY = {
    "open": {"none", "wrong", "revoked", "read", "worker", "submit", "admin"},
    "read": {"read", "worker", "submit", "admin"},
    "worker": {"worker", "admin"},
    "submit": {"submit", "admin"},
    "admin": {"admin"},
}
STRANGERS = ("none", "wrong", "revoked")
IDENTITIES = (*STRANGERS, "read", "worker", "submit", "admin")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
PLACES = {"{id}": "none", "{lane:path}": "task%3Anobody", "{tier}": "FAST", "{queue}": "q", "{stream}": "s"}
PLACES |= {"{type}": "e"}

TABLE = {(method, path): role for role, method, path in map(str.split, ROUTES.strip().splitlines())}
CALL_TABLE = {name: role for role, name in map(str.split, CALLS.strip().splitlines())}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with tokens, and a token of each identity; one of them is revoked while it runs."""
    folder = tmp_path_factory.mktemp("matrix") / "data"
    known = {name: tokens.new(folder, name, name) for name in IDENTITIES if name not in STRANGERS}
    known |= {"revoked": tokens.new(folder, "admin", "revoked"), "wrong": "duetime_wrong"}
    with ServerProcess(folder) as server:
        assert status(server, "GET", "/metrics", known["revoked"]) == 200
        tokens.revoke(folder, "revoked")
        yield server, known


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A server without tokens."""
    with ServerProcess(tmp_path_factory.mktemp("bare") / "data") as server:
        yield server


class Served:
    """What the router itself serves."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self.paths = {path: set(served.endpoints) for path, served in router.served.items()}

    def role(self, method: str, path: str) -> str | None:
        """What a request needs: paths may overlap, and the first route takes it. None: there is none."""
        for served, _ in self._router.matches(unquote(concrete(path))):
            if method in served.endpoints:
                return TABLE["GET" if method == "HEAD" else method, served.path]
        return None


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = serving.make(Config(data=DataSettings(dir=str(tmp_path_factory.mktemp("table") / "data"))))
    return Served(made.router)


def concrete(path: str) -> str:
    for name, place in PLACES.items():
        path = path.replace(name, place)
    return path


def status(server: ServerProcess, method: str, path: str, token: str | None) -> int:
    """What is answered. The body may be a stream without an end, and is not read."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
    headers = {} if token is None else {"X-Duetime-Token": token}
    body = None
    if method not in ("GET", "HEAD", "DELETE"):
        body, headers["Content-Type"] = json.dumps({}), "application/json"
    try:
        connection.request(method, concrete(path), body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def expected(role: str, identity: str) -> int:
    """401, 403, or 0 for anything else."""
    if identity in MAY[role]:
        return 0
    return 401 if identity in STRANGERS else 403


def test_every_route_has_a_row(served):
    rows = {(method, path) for path, methods in served.paths.items() for method in methods - {"HEAD"}}
    assert rows == set(TABLE)
    assert all(("GET" in methods) == ("HEAD" in methods) for methods in served.paths.values())


@pytest.mark.parametrize("identity", IDENTITIES)
def test_every_route_by(guarded, served, identity):
    server, known = guarded
    wrong = []
    for path in served.paths:
        for method in METHODS:
            answer, role = status(server, method, path, known.get(identity)), served.role(method, path)
            due = 405 if role is None else expected(role, identity)
            if answer != due if due else answer in (401, 403, 405):
                wrong.append(f"{method} {path}: {answer} instead of {due or 'what the route itself says'}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("token", [None, "duetime_wrong"], ids=["none", "any"])
def test_a_server_without_tokens_needs_none(bare, served, token):
    wrong = [
        f"{method} {path}"
        for path, methods in served.paths.items()
        for method in methods
        if status(bare, method, path, token) in (401, 403, 405)
    ]
    assert not wrong


@pytest.mark.parametrize("path", ["/v1", "/v1/nothing", "/v1/intents/", "/../etc/passwd", "/v1/admin"])
def test_an_unknown_path_is_not_found_with_any_token(guarded, path):
    server, known = guarded
    for identity in IDENTITIES:
        assert status(server, "GET", path, known.get(identity)) == 404


# gRPC.


def test_every_call_has_a_row():
    service = duetime_pb2.DESCRIPTOR.services_by_name["Duetime"]
    assert {method.name for method in service.methods} == set(CALL_TABLE)


async def code_of(channel: Any, name: str, token: str | None) -> grpc.StatusCode:
    """How a call with an empty message ends. One that goes on is ended after a moment, and was let in."""
    method = duetime_pb2.DESCRIPTOR.services_by_name["Duetime"].methods_by_name[name]
    path = f"/{method.containing_service.full_name}/{name}"
    try:
        if method.client_streaming:
            talk = channel.stream_stream(path)(metadata=metadata(token), timeout=2)
            await talk.write(b"")
            await talk.done_writing()
            await talk.read()
        elif method.server_streaming:
            await channel.unary_stream(path)(b"", metadata=metadata(token), timeout=1).read()
        else:
            await channel.unary_unary(path)(b"", metadata=metadata(token), timeout=30)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


@pytest.mark.parametrize("identity", IDENTITIES)
def test_every_call_by(guarded, identity):
    server, known = guarded
    codes = {401: grpc.StatusCode.UNAUTHENTICATED, 403: grpc.StatusCode.PERMISSION_DENIED}

    async def main():
        async with channel_to(server.grpc) as channel:
            for name, role in CALL_TABLE.items():
                code = await code_of(channel, name, known.get(identity))
                due = expected(role, identity)
                assert code is codes[due] if due else code not in codes.values(), f"{name}: {code}"

    asyncio.run(main())


def test_a_grpc_server_without_tokens_needs_none(bare):
    async def main():
        async with channel_to(bare.grpc) as channel:
            for name in CALL_TABLE:
                code = await code_of(channel, name, None)
                assert code not in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED), name

    asyncio.run(main())


def test_no_other_service_is_there(guarded):
    """Health and reflection tell what anybody may know, and need no token."""
    server, _ = guarded

    async def main():
        async with channel_to(server.grpc) as channel:
            stub = reflection_pb2_grpc.ServerReflectionStub(channel)
            ask = reflection_pb2.ServerReflectionRequest(list_services="")
            answer = await stub.ServerReflectionInfo(iter([ask])).read()
            names = {each.name for each in answer.list_services_response.service}
            assert names == {
                "duetime.v1.Duetime",
                "grpc.health.v1.Health",
                "grpc.reflection.v1alpha.ServerReflection",
            }

    asyncio.run(main())
