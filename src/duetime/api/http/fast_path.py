"""The shortest way in: a plain POST of one intent, answered without a task, a scope or a route.

Of the time a small request takes, most goes into what is built around it. So a connection shows a new intent
here first. What is not plain, or wrong in any way, steps aside and goes through the application like every
other request: there it is answered, or told what is wrong with it, as if it had not been here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import copy_context
from http import HTTPStatus
from typing import Final

import msgspec

from duetime.api.access.auth import Gate, Role
from duetime.api.access.quotas import bearer
from duetime.api.http.browsers import Browsers
from duetime.api.http.endpoint import JSON, Load, bug, refusal
from duetime.api.resources.intents import made
from duetime.api.service import Begun, Service
from duetime.errors import DuetimeError
from duetime.wire.intent import NewIntent

METHOD, PATH = b"POST", b"/v1/intents"
# Who sends one of these asks for more than an intent (to be answered as before, or with a key), or is a
# browser, which is judged on the long way. `Host` and the content type must be ones that are known.
_MORE: Final = frozenset(
    {b"x-duetime-request-id", b"idempotency-key", b"origin", b"sec-fetch-site", b"host", b"content-type"}
)
_LINES: Final = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}

Headers = Sequence[tuple[bytes, bytes]]
_new = msgspec.json.Decoder(NewIntent)


class Quick:
    """Takes new intents, one by one."""

    def __init__(self, service: Service, gate: Gate, load: Load, browsers: Browsers) -> None:
        self._service = service
        self._gate = gate
        self._load = load
        self._hosts = browsers.known

    def begin(self, headers: Headers, body: bytes) -> Begun | None:
        """Hand in the intent of this request; None: it is not plain, and nothing was done."""
        # Whose it is is known to this one only: nothing of it stays in the connection's context.
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
        except Exception:  # the long way says what it is
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

    def answer(self, begun: Begun) -> bytes:
        """What goes back when the reply is there, all of it."""
        self._load.end(begun.token)
        try:
            answer = made(self._service, *self._service.end(begun))
        except DuetimeError as error:
            self._load.refused(error)
            answer = refusal(error)
        except Exception as error:
            answer = bug(error, METHOD.decode(), PATH.decode())
        more = b"".join([b"%b: %b\r\n" % header for header in answer.headers])
        return b"%bcontent-type: %b\r\ncontent-length: %d\r\n%b\r\n%b" % (
            _LINES[answer.status], answer.media_type, len(answer.body), more, answer.body,
        )  # fmt: skip
