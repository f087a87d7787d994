"""The port itself: tokens, TLS, reflection, the standard health service, and what may not be."""

from __future__ import annotations

import asyncio

import grpc
import pytest
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from duetime.api.access import tokens
from duetime.limits import GRPC_OPEN_CALLS_MAX
from duetime.v1 import deliveries_pb2, intents_pb2
from duetime.v1.stub import SERVICE, DuetimeStub
from tests.e2e.process import environment
from tests.grpc.subscriber import Subscriber, calling, channel_to, create, credit, done, metadata, trailer
from tests.http.server import ServerProcess

NEW = intents_pb2.CreateRequest(
    intent=intents_pb2.NewIntent(delay_ms=3_600_000, stream=intents_pb2.Stream(name="nobody"))
)
UNAUTHENTICATED, DENIED = grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED


async def outcome(call) -> tuple[grpc.StatusCode, str | None]:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code(), trailer(error).get("duetime-error-code")
    return grpc.StatusCode.OK, None


async def joined(address: str, token: str | None) -> tuple[grpc.StatusCode, str | None]:
    subscriber = Subscriber(address, "auth", 1, token=token)
    try:
        return await outcome(subscriber.__aenter__())
    finally:
        await subscriber.__aexit__()


def test_tokens_and_roles(tmp_path):
    folder = tmp_path / "data"
    known = {role: tokens.new(folder, role, role) for role in ("read", "submit", "worker", "admin")}

    async def main(address: str) -> None:
        async with calling(address) as stub:
            assert await outcome(stub.Health(intents_pb2.HealthRequest())) == (grpc.StatusCode.OK, None)
            assert await outcome(stub.List(intents_pb2.ListRequest())) == (UNAUTHENTICATED, "40101")
            wrong = stub.List(intents_pb2.ListRequest(), metadata=metadata("duetime_wrong"))
            assert await outcome(wrong) == (UNAUTHENTICATED, "40101")
            assert await joined(address, None) == (UNAUTHENTICATED, "40101")
            bearer = (("authorization", f"Bearer {known['submit']}"),)
            assert await outcome(stub.Create(NEW, metadata=bearer)) == (grpc.StatusCode.OK, None)
            ok, no = (grpc.StatusCode.OK, None), (DENIED, "40301")
            for role, writes, takes in (
                ("read", no, no), ("submit", ok, no), ("worker", no, ok), ("admin", ok, ok),
            ):  # fmt: skip
                mine = metadata(known[role])
                assert await outcome(stub.List(intents_pb2.ListRequest(), metadata=mine)) == ok, role
                assert await outcome(stub.Create(NEW, metadata=mine)) == writes, role
                assert await joined(address, known[role]) == takes, role
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await stub.WatchIntents(intents_pb2.WatchIntentsRequest()).read()
            assert error.value.code() is UNAUTHENTICATED

    with ServerProcess(folder) as server:
        asyncio.run(main(server.grpc))


def test_tls(tmp_path):
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    (tmp_path / "cert.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    settings = {"server__tls_cert": tmp_path / "cert.pem", "server__tls_key": tmp_path / "key.pem"}

    async def main(address: str) -> None:
        assert address.startswith("grpcs://")
        async with channel_to(address, authority.cert_pem.bytes()) as channel:
            created = await DuetimeStub(channel).Create(NEW)
            assert created.intent.intent_id
        async with channel_to(address.replace("grpcs", "grpc")) as channel:
            code, _ = await outcome(DuetimeStub(channel).Create(NEW, timeout=5))
            assert code is not grpc.StatusCode.OK

    with ServerProcess(tmp_path / "data", **settings) as server:
        asyncio.run(main(server.grpc))


def test_reflection_names_the_service_and_its_calls(server: ServerProcess):
    async def main():
        async with channel_to(server.grpc) as channel:
            info = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
            ask = reflection_pb2.ServerReflectionRequest
            answers = [answer async for answer in info(iter([ask(list_services="")]))]
            names = {service.name for service in answers[0].list_services_response.service}
            assert {SERVICE, "grpc.health.v1.Health"} <= names
            answers = [answer async for answer in info(iter([ask(file_containing_symbol=SERVICE)]))]
            files = b"".join(answers[0].file_descriptor_response.file_descriptor_proto)
            assert b"WatchIntents" in files and b"CreateBatchRequest" in files

    asyncio.run(main())


def test_watching_health_does_not_block_other_calls(server: ServerProcess):
    """Streams that stay open counted with single calls: a stranger's made every check of the health fail."""

    async def main() -> None:
        request = health_pb2.HealthCheckRequest()
        async with channel_to(server.grpc) as channel, asyncio.timeout(30):
            stub = health_pb2_grpc.HealthStub(channel)
            watches = []
            for _ in range(GRPC_OPEN_CALLS_MAX):  # one by one: callers without a token share 8 reading slots
                watches.append(watch := stub.Watch(request))
                await watch.read()
            assert (await stub.Check(request)).status == health_pb2.HealthCheckResponse.SERVING
            for watch in watches:
                watch.cancel()

    asyncio.run(main())


def test_the_standard_health_service(server: ServerProcess):
    async def main():
        async with channel_to(server.grpc) as channel:
            check = health_pb2_grpc.HealthStub(channel).Check
            for service in ("", SERVICE):
                answer = await check(health_pb2.HealthCheckRequest(service=service))
                assert answer.status == health_pb2.HealthCheckResponse.SERVING

    asyncio.run(main())


def test_a_port_that_is_taken_is_an_error(server: ServerProcess, tmp_path):
    port = server.grpc.rpartition(":")[2]
    with pytest.raises(AssertionError) as error:
        ServerProcess(tmp_path / "data", "--grpc-port", port).start()
    assert f"Port {port} of 127.0.0.1 cannot be used for gRPC" in str(error.value)


def test_without_its_packages_there_is_http_alone(tmp_path):
    (tmp_path / "grpc.py").write_text("raise ModuleNotFoundError(\"No module named 'grpc'\", name='grpc')\n")
    server = ServerProcess(tmp_path / "data")
    server.variables["PYTHONPATH"] = f"{tmp_path}:{environment()['PYTHONPATH']}"
    with server:
        assert server.ask("GET", "/health").status == 200
        assert not server.grpc
        assert any("pip install 'duetime[grpc]'" in line for line in server.words)
        assert server.stop() == 0


MANUAL = deliveries_pb2.ACK_MODE_MANUAL
HELLO = deliveries_pb2.Hello(consumer="c", ack_mode=MANUAL, credits=[credit("wrong", 1)])
WRONG: dict[str, tuple[deliveries_pb2.ClientMessage, ...]] = {
    "no hello": (deliveries_pb2.ClientMessage(heartbeat=deliveries_pb2.Heartbeat()),),
    "nothing": (deliveries_pb2.ClientMessage(),),
    "no mode": (
        deliveries_pb2.ClientMessage(
            hello=deliveries_pb2.Hello(consumer="c", credits=[credit("wrong", 1)])
        ),
    ),
    "no name": (
        deliveries_pb2.ClientMessage(
            hello=deliveries_pb2.Hello(ack_mode=MANUAL, credits=[credit("wrong", 1)])
        ),
    ),
    "no source": (
        deliveries_pb2.ClientMessage(hello=deliveries_pb2.Hello(consumer="c", ack_mode=MANUAL)),
    ),
    "a source without a name": (
        deliveries_pb2.ClientMessage(
            hello=deliveries_pb2.Hello(consumer="c", ack_mode=MANUAL, credits=[credit("", 1)])
        ),
    ),
    "too many credits": (
        deliveries_pb2.ClientMessage(
            hello=deliveries_pb2.Hello(consumer="c", ack_mode=MANUAL, credits=[credit("wrong", 10_001)])
        ),
    ),
    "too many credits, bit by bit": (
        deliveries_pb2.ClientMessage(hello=HELLO),
        deliveries_pb2.ClientMessage(credits=deliveries_pb2.Credits(credits=[credit("wrong", 10_000)])),
    ),
    "hello twice": (
        deliveries_pb2.ClientMessage(hello=HELLO), deliveries_pb2.ClientMessage(hello=HELLO),
    ),
    "an ack without an outcome": (
        deliveries_pb2.ClientMessage(hello=HELLO),
        deliveries_pb2.ClientMessage(acks=deliveries_pb2.Acks(acks=[deliveries_pb2.Ack(intent_id="x")])),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_an_invalid_message_ends_the_stream_with_its_code(server: ServerProcess, case):
    async def main():
        async with calling(server.grpc) as stub:
            call = stub.Deliveries()
            for message in WRONG[case]:
                await call.write(message)
            with pytest.raises(grpc.aio.AioRpcError) as error:
                async with asyncio.timeout(20):
                    while await call.read() is not grpc.aio.EOF:
                        pass
                    raise AssertionError(await call.code())
            assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert trailer(error.value)["duetime-error-code"] == "42208"

    asyncio.run(main())


def test_a_stream_that_ends_wrongly_gives_back_what_it_held(server: ServerProcess):
    async def main():
        policy = intents_pb2.Redelivery(initial_delay_ms=0, max_delay_ms=0)
        async with calling(server.grpc) as stub:
            await create(stub, ["given-back"], "given-back", redelivery=policy)
            async with Subscriber(server.grpc, "given-back", 1) as first:
                await first.one()
                await first.send(hello=HELLO)
                assert await first.end() is grpc.StatusCode.INVALID_ARGUMENT
            async with Subscriber(server.grpc, "given-back", 1) as second:
                delivery = await second.one()
                assert delivery.delivery == 2
                await second.ack(done(delivery))

    asyncio.run(main())
