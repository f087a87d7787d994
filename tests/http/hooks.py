"""A receiver of webhooks on a real socket: what came is kept by path, and each path answers as it is told."""

from __future__ import annotations

import contextlib
import json
import queue
import sys
import threading
from collections import defaultdict
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

WAIT_S = 20


class Got(NamedTuple):
    """A request that came in. Header names are in lower case."""

    method: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Say(NamedTuple):
    """An answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that was cut is what some tests are about, not something to tell."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Hooks:
    """Answers 200 unless `says` names others for a path (the last one stays), or the path is held."""

    def __init__(self) -> None:
        self._got: dict[str, queue.Queue[Got]] = defaultdict(queue.Queue)
        self._says: dict[str, list[Say]] = {}
        self._held: dict[str, threading.Event] = {}
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/{path}"

    def says(self, path: str, *answers: Say) -> str:
        """Answer like this, one after the other; gives the URL."""
        self._says[path] = list(answers)
        return self.url(path)

    def hold(self, path: str) -> str:
        """Answer only when `let_go` is called; gives the URL."""
        self._held[path] = threading.Event()
        return self.url(path)

    def let_go(self, path: str) -> None:
        self._held[path].set()

    def take(self, path: str, within_s: float = WAIT_S) -> Got:
        """The next request on this path."""
        return self._got[path].get(timeout=within_s)

    def count(self, path: str) -> int:
        """Requests on this path that nobody has taken yet."""
        return self._got[path].qsize()

    def __enter__(self) -> Hooks:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        for event in self._held.values():
            event.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(WAIT_S)

    def _answer(self, path: str) -> Say:
        held = self._held.get(path)
        if held is not None:
            held.wait(WAIT_S)
        says = self._says.get(path)
        if not says:
            return Say()
        return says.pop(0) if len(says) > 1 else says[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hooks = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                path = self.path.lstrip("/")
                headers = {name.lower(): value for name, value in self.headers.items()}
                hooks._got[path].put(Got(self.command, headers, body))
                with contextlib.suppress(ConnectionError):  # who asked has gone
                    self.answer(hooks._answer(path))

            def answer(self, say: Say) -> None:
                self.send_response(say.status)
                for name, value in say.headers.items():
                    self.send_header(name, value)
                if say.status != 204:
                    self.send_header("content-length", str(len(say.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(say.body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = handle_any

            def log_message(self, format: str, *args: Any) -> None:
                """Not into the tests' output."""

        return Handler
