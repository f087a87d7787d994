"""How many connections the gRPC port has. The library counts them, closes those that are too many, and tells
nobody; so they are counted here when somebody asks for the server's health.
"""

from __future__ import annotations

import os

from duetime.api.access.admission import Admission
from duetime.limits import FIRST_REQUEST_MS, GRPC_IDLE_MS, HANDSHAKE_MS

_ESTABLISHED = "01"


class GrpcAdmission(Admission):
    """The limit of the gRPC port, which the library keeps."""

    port = 0
    """Where it listens; 0: not yet."""

    def options(self) -> list[tuple[str, int]]:
        """What the library must know: how many connections there may be, how long they may take to say
        something, and how long they may stay without a call."""
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
    """How many files this process has open: a cheap look, before the expensive one."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:  # not on this system: nothing is told
        return 0


def _connections(port: int) -> int:
    """How many connections there are to a port of this machine."""
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
