"""The gRPC port: the calls, the standard health service, reflection, and TLS."""

from __future__ import annotations

from pathlib import Path

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from duetime.api.grpc.calls import Door
from duetime.api.grpc.deliveries import DeliveriesParts, DeliveryCalls
from duetime.api.grpc.intents import IntentCalls
from duetime.api.grpc.options import GrpcParts
from duetime.api.grpc.reading import OpenCalls, RpcHandler
from duetime.api.grpc.watch import Watches
from duetime.errors import BadConfig
from duetime.limits import (
    GRPC_GRACE_S,
    GRPC_KEEPALIVE_MS,
    GRPC_KEEPALIVE_TIMEOUT_MS,
    GRPC_STREAMS_PER_CONNECTION,
)
from duetime.v1 import duetime_pb2
from duetime.v1.stub import SERVICE


class GrpcSide:
    """The gRPC server beside HTTP: the same service on another port."""

    def __init__(self, parts: GrpcParts) -> None:
        self._parts = parts
        self._server: grpc.aio.Server | None = None

    async def start(self) -> str:
        settings = self._parts.settings
        server = grpc.aio.server(
            options=[
                ("grpc.so_reuseport", 0),  # a second server on the same port is a mistake
                *self._parts.admission.options(),
                ("grpc.max_receive_message_length", settings.request_bytes_max),
                ("grpc.max_send_message_length", -1),
                ("grpc.max_concurrent_streams", GRPC_STREAMS_PER_CONNECTION),
                ("grpc.keepalive_time_ms", GRPC_KEEPALIVE_MS),
                ("grpc.keepalive_timeout_ms", GRPC_KEEPALIVE_TIMEOUT_MS),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.min_ping_interval_without_data_ms", GRPC_KEEPALIVE_TIMEOUT_MS),
                (
                    "grpc.http2.bdp_probe",
                    0,
                ),  # otherwise windows grow to megabytes, also for clients without a token
            ]
        )
        self._add_calls(server)
        port = self._listen(server)
        self._server = server
        self._parts.admission.port = port
        await server.start()
        await self._health.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)
        await self._health.set("", health_pb2.HealthCheckResponse.SERVING)
        return f"{'grpcs' if settings.tls_cert else 'grpc'}://{_bracketed(settings.host)}:{port}"

    async def stop(self, within_s: float) -> None:
        if self._server is None:
            return
        await self._health.enter_graceful_shutdown()
        await self._deliveries.stop(max(0.0, within_s - 2 * GRPC_GRACE_S))
        await self._server.stop(GRPC_GRACE_S)

    def _add_calls(self, server: grpc.aio.Server) -> None:
        parts = self._parts
        door = Door(parts.gate, parts.load, parts.repeats)
        self._deliveries = DeliveryCalls(
            DeliveriesParts(parts.service, parts.channel, door, parts.revocations, parts.result_bytes_max)
        )
        handlers: dict[str, RpcHandler] = {
            unary.name: grpc.stream_unary_rpc_method_handler(door.behaviour(unary))
            for unary in IntentCalls(parts.service, parts.narrator).table()
        }
        watches = Watches(parts.events, door, parts.revocations)
        handlers["WatchIntents"] = grpc.stream_stream_rpc_method_handler(watches.behaviour)
        handlers["Deliveries"] = grpc.stream_stream_rpc_method_handler(self._deliveries.behaviour)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self._add_open_calls(server, OpenCalls(door.reading))

    def _add_open_calls(self, server: grpc.aio.Server, calls: OpenCalls) -> None:
        """The standard services for health and reflection, which need no token."""
        self._health = health.aio.HealthServicer()
        names = (
            duetime_pb2.DESCRIPTOR.services_by_name["Duetime"].full_name,
            health.SERVICE_NAME,
            reflection.SERVICE_NAME,
        )
        about = reflection.aio.ReflectionServicer(names)
        asked = health_pb2.HealthCheckRequest
        services: dict[str, dict[str, RpcHandler]] = {
            health.SERVICE_NAME: {
                "Check": calls.unary(asked, self._health.Check),
                "Watch": calls.stream(asked, self._health.Watch),
            },
            reflection.SERVICE_NAME: {
                "ServerReflectionInfo": calls.both(
                    reflection_pb2.ServerReflectionRequest, about.ServerReflectionInfo
                )
            },
        }
        server.add_generic_rpc_handlers(
            tuple(grpc.method_handlers_generic_handler(name, found) for name, found in services.items())
        )

    def _listen(self, server: grpc.aio.Server) -> int:
        settings = self._parts.settings
        address = f"{_bracketed(settings.host)}:{settings.grpc_port}"
        try:
            if not settings.tls_cert:
                port = server.add_insecure_port(address)
            else:
                pair = (Path(settings.tls_key).read_bytes(), Path(settings.tls_cert).read_bytes())
                port = server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
        except (RuntimeError, OSError) as error:
            raise BadConfig(
                f"Port {settings.grpc_port} of {settings.host} cannot be used for gRPC: {error}.",
                hint="Another server may be running. Choose another with --grpc-port; 0 picks a free one.",
            ) from error
        return int(port)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
