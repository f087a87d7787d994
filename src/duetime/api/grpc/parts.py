"""What the gRPC port is made of. Knows nothing of gRPC itself, which may not be installed."""

from __future__ import annotations

from msgspec import Struct

from duetime.api.auth import Gate
from duetime.api.events import Events
from duetime.api.grpc.port import GrpcAdmission
from duetime.api.http import Load
from duetime.api.repeats import Repeats
from duetime.api.revocations import Revocations
from duetime.api.service import Service
from duetime.channels.stream import StreamChannel
from duetime.insight.health import Narrator
from duetime.settings import ServerSettings


class GrpcParts(Struct):
    """What the gRPC port serves, and with what it is shared."""

    settings: ServerSettings
    admission: GrpcAdmission
    """Of the gRPC port's connections."""
    service: Service
    gate: Gate
    revocations: Revocations
    load: Load
    repeats: Repeats
    events: Events
    narrator: Narrator
    channel: StreamChannel
    result_bytes_max: int
