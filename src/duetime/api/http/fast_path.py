"""The fast path: a plain POST of one intent, answered without a task and without a route.

Tasks, routes and checks take most of the time of a small request, so a connection offers each new intent to
the fast path first. A request that is not plain, or invalid in any way, goes to the router like every other
request. The fast path has then changed nothing, and the router answers or refuses the request.
"""

from __future__ import annotations

from contextvars import copy_context
from typing import Final

import msgspec

from duetime.api.access.auth import Gate, Role
from duetime.api.access.quotas import bearer
from duetime.api.http.browsers import Browsers
from duetime.api.http.endpoint import Load, bug, refusal
from duetime.api.http.exchange import JSON, Answer, Headers
from duetime.api.resources.intents import made
from duetime.api.service import Begun, Service
from duetime.errors import DuetimeError
from duetime.wire.intent import NewIntent

METHOD, PATH = b"POST", b"/v1/intents"
# Requests with these headers have a request id or a key, or come from a browser; the router handles them.
# `Host` and the content type must have known values.
_MORE: Final = frozenset(
    {b"x-duetime-request-id", b"idempotency-key", b"origin", b"sec-fetch-site", b"host", b"content-type"}
)
_new = msgspec.json.Decoder(NewIntent)


class FastPath:
    """Takes new intents, one by one."""

    def __init__(self, service: Service, gate: Gate, load: Load, browsers: Browsers) -> None:
        self._service = service
        self._gate = gate
        self._load = load
        self._hosts = browsers.known

    def begin(self, headers: Headers, body: bytes) -> Begun | None:
        """Submit the intent of this request; None: the request is not plain, and nothing was done."""
        # The token is set in a separate context, not in that of the connection.
        return copy_context().run(self._begin, headers, body)

    def _begin(self, headers: Headers, body: bytes) -> Begun | None:
        load = self._load
        if len(body) > load.one_bytes_max or not body.isascii() or not self._is_plain(headers):
            return None
        try:
            self._gate.check(headers, Role.submit)
            token = bearer.get()
            if not load.has_room(token):
                return None
            begun = self._service.begin(_new.decode(body))
        except Exception:  # the router refuses it with the reason
            return None
        begun.token = token
        load.begin(token)
        return begun

    def _is_plain(self, headers: Headers) -> bool:
        hosts = 0
        for name, value in headers:
            if name in _MORE:
                if name == b"host":
                    if value not in self._hosts:
                        return False
                    hosts += 1
                elif name != b"content-type" or value != JSON:
                    return False
        return hosts == 1

    def answer(self, begun: Begun) -> Answer:
        """The response, when the engine has replied."""
        self._load.end(begun.token)
        try:
            return made(self._service, *self._service.end(begun))
        except DuetimeError as error:
            self._load.refused(error)
            return refusal(error)
        except Exception as error:
            return bug(error, METHOD.decode(), PATH.decode())
