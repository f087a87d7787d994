"""The parts of the gRPC port. Does not import grpc, which may not be installed."""

from __future__ import annotations

from msgspec import Struct

from duetime.api.access.auth import Gate
from duetime.api.access.revocations import Revocations
from duetime.api.grpc.connection_limit import GrpcAdmission
from duetime.api.http.endpoint import Load
from duetime.api.http.request_ids import Repeats
from duetime.api.http.sse import Events
from duetime.api.service import Service
from duetime.channels.pull import StreamChannel
from duetime.insight.health import Narrator
from duetime.settings import ServerSettings


class GrpcParts(Struct):
    """The parts of the gRPC port, some of them shared with HTTP."""

    settings: ServerSettings
    admission: GrpcAdmission
    """The admission of connections to the gRPC port."""
    service: Service
    gate: Gate
    revocations: Revocations
    load: Load
    repeats: Repeats
    events: Events
    narrator: Narrator
    channel: StreamChannel
    result_bytes_max: int
