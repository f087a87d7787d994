"""The connection limit of the gRPC port. The library closes connections beyond the limit without reporting
it, so they are counted here for the health check.
"""

from __future__ import annotations

import os

from duetime.api.access.admission import Admission
from duetime.limits import FIRST_REQUEST_MS, GRPC_IDLE_MS, HANDSHAKE_MS

_ESTABLISHED = "01"


class GrpcAdmission(Admission):
    """The limit of the gRPC port, which the library enforces."""

    port = 0
    """The port; 0 before it listens."""

    def options(self) -> list[tuple[str, int]]:
        """The options of the library: maximum connections, time limit of the handshake, and maximum time
        without a call."""
        return [
            ("grpc.max_allowed_incoming_connections", self.most),
            ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
            ("grpc.http2.settings_timeout", FIRST_REQUEST_MS),
            ("grpc.max_connection_idle_ms", GRPC_IDLE_MS),
        ]

    def trouble(self) -> str:
        if self.port and _files() >= self.most and _connections(self.port) >= self.most:
            self.full()
        return super().trouble()


def _files() -> int:
    """The number of open files of this process: a cheap check before the expensive one."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:  # not available on this system
        return 0


def _connections(port: int) -> int:
    """The number of connections to a local port."""
    found = 0
    for name in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        try:
            with open(name, encoding="ascii") as file:
                lines = file.readlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, _, state = line.split(maxsplit=4)[:4]
            found += state == _ESTABLISHED and int(local.rpartition(":")[2], 16) == port
    return found
