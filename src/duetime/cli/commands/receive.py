"""`duetime receive`: listens for webhooks on this machine and prints them.

A tool for first steps. It needs only Python, and does nothing else with a webhook.
"""

from __future__ import annotations

import contextlib
import socketserver
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated

import msgspec
import typer
from msgspec import Struct

from duetime.cli.args import time_args
from duetime.cli.ui import output
from duetime.clock import SystemClock
from duetime.errors import BadConfig
from duetime.timefmt import moment_of

PORT = 9_000
# Characters of a body in the output; `--json` has the whole body.
_SHOWN_CHARS = 500


class Arrival(Struct, rename="camel"):
    """One received request."""

    at: str
    method: str
    path: str
    intent_id: str | None
    delivery: str | None
    batch_size: str | None
    headers: dict[str, str]
    body: object
    """The body, decoded if it is JSON; otherwise as text."""


def receive(
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="Port; 0 picks a free one.")] = PORT,
    host: Annotated[str, typer.Option("--host", help="Listen address.")] = "127.0.0.1",
    status: Annotated[
        int, typer.Option("--status", min=200, max=599, help="Response status; use 503 to see retries.")
    ] = 200,
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="Stop after N webhooks.", show_default=False)
    ] = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Listen for webhooks on this machine and print them, until Ctrl-C.

    Examples:

      duetime receive --port 9000

      duetime receive --status 503
    """
    receiver = Receiver(host, port, status, count, as_json)
    with contextlib.suppress(KeyboardInterrupt):
        output.words(f"Waiting for webhooks on {receiver.url}; each gets status {status}. Stop with Ctrl-C.")
        receiver.run()


class Receiver:
    """The listening socket and its handler."""

    def __init__(self, host: str, port: int, status: int, count: int | None, as_json: bool) -> None:
        self._status = status
        self._left = count
        self._as_json = as_json
        self._lock = threading.Lock()
        try:
            self._server = _Server((host, port), self._handler())
        except OSError as error:
            raise BadConfig(
                f"Port {port} of {host} cannot be used: {error.strerror}.",
                hint="Choose another with --port, or 0 for any free one.",
            ) from error
        self.url = f"http://{host}:{self._server.server_port}"

    def run(self) -> None:
        """Run until it is stopped, or until enough webhooks have arrived."""
        with self._server:
            self._server.serve_forever()

    def _arrived(self, arrival: Arrival) -> None:
        with self._lock:  # each request has its own thread: lines must not be mixed
            if self._left == 0:
                return
            _show(arrival, self._as_json)
            if self._left is not None:
                self._left -= 1

    def _answered(self) -> None:
        if self._left == 0:
            threading.Thread(target=self._server.shutdown, daemon=True).start()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def take(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                receiver._arrived(_arrival(self, body))
                self.send_response(receiver._status)
                self.send_header("content-length", "0")
                self.end_headers()
                receiver._answered()

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = take

            def log_message(self, format: str, *args: object) -> None:
                """Handles requests; `_show` prints them."""

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def server_bind(self) -> None:
        # Does not call HTTPServer's method, which makes a name lookup that is not needed.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]


def _arrival(request: BaseHTTPRequestHandler, body: bytes) -> Arrival:
    headers = {name.lower(): value for name, value in request.headers.items()}
    return Arrival(
        at=time_args.shown(moment_of(SystemClock().now_ms())),
        method=request.command,
        path=request.path,
        intent_id=headers.get("x-duetime-intent-id"),
        delivery=headers.get("x-duetime-delivery"),
        batch_size=headers.get("x-duetime-batch-size"),
        headers=headers,
        body=_decoded(body),
    )


def _decoded(body: bytes) -> object:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body.decode("utf-8", "replace")


def _show(arrival: Arrival, as_json: bool) -> None:
    if as_json:
        output.json_line(arrival)
        return
    said = "" if arrival.delivery is None else f"  delivery {arrival.delivery}"
    if arrival.batch_size is not None:
        said = f"  a batch of {arrival.batch_size}"
    body = arrival.body if isinstance(arrival.body, str) else msgspec.json.encode(arrival.body).decode()
    if len(body) > _SHOWN_CHARS:
        body = f"{body[:_SHOWN_CHARS]} ... ({len(body)} characters)"
    output.line(
        (f"{arrival.at}  ", "dim"),
        f"{arrival.method} {arrival.path}  ",
        (arrival.intent_id or "", "cyan"),
        said,
    )
    output.line(f"  {body}")
