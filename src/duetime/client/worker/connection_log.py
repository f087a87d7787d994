"""Reports failed connections of a worker: where it looked, why it failed, and whether HTTP works there."""

from __future__ import annotations

import asyncio
import logging

from duetime.client.http.transport import Request, Transport
from duetime.errors import DuetimeError, Unreachable
from duetime.limits import WORKER_HTTP_CHECK_S, WORKER_UNREACHABLE_LOGGED_S

_logger = logging.getLogger("duetime.worker")


class ConnectionLog:
    """The log lines about one server. A line is repeated only after a while."""

    def __init__(self, address: str, http: str | None) -> None:
        """`http`: the HTTP address of the server, if it is known."""
        self._address = address
        self._http = http
        self._line = ""
        self._logged_s = 0.0

    def connected(self, name: str) -> None:
        _logger.info("Connected to %s as %r.", self._address, name)
        self._line = ""

    async def failed(self, reason: str) -> None:
        failure = f"No connection to gRPC at {self._address} ({reason or 'it ended'})."
        line = f"{failure}{await self._hint()} Retrying."
        now_s = asyncio.get_running_loop().time()
        if line != self._line or now_s - self._logged_s > WORKER_UNREACHABLE_LOGGED_S:
            self._line, self._logged_s = line, now_s
            _logger.warning("%s", line)

    async def _hint(self) -> str:
        """Whether HTTP works: then only gRPC is missing there."""
        if self._http is None:
            return ""
        transport = Transport(self._http, timeout_s=WORKER_HTTP_CHECK_S)
        await transport.open()
        try:
            await transport.send(Request("GET", "/health/live"), tries=1)
        except Unreachable:
            return f" HTTP at {self._http} cannot be reached either."
        except DuetimeError as error:
            return f" HTTP at {self._http} answers, but not as a live Duetime server: {error.message}"
        finally:
            await transport.close()
        return (
            f" HTTP at {self._http} works. Is gRPC on another port (--grpc-port; `duetime serve` prints it), "
            "not installed on the server (the extra grpc), or blocked by a proxy or firewall?"
        )
