"""`duetime serve`: the server in this process."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from duetime import config
from duetime.cli.commands.receive import PORT as RECEIVER_PORT
from duetime.cli.ui import output
from duetime.errors import BadConfig
from duetime.limits import HTTP_PORT, URL_DEFAULT
from duetime.safe_text import log_to_stderr

if TYPE_CHECKING:
    from duetime.api.http.server import Listening

_EVERYWHERE = ("0.0.0.0", "[::]")
# The default address of the commands.
_DEFAULTS = (URL_DEFAULT, f"http://127.0.0.1:{HTTP_PORT}")


def serve(
    data: Annotated[Path | None, typer.Option("--data", metavar="DIR", help="The data folder.")] = None,
    host: Annotated[
        str | None, typer.Option("--host", help="Listen address (default: loopback only).")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", help="HTTP port; 0 picks a free one.")] = None,
    grpc_port: Annotated[
        int | None, typer.Option("--grpc-port", help="gRPC port; 0 picks a free one.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Configuration file.")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow a public listen address without tokens.")
    ] = False,
) -> None:
    """Run the server: HTTP on port 7928, gRPC on port 7929, data in ./duetime-data.

    SIGTERM or Ctrl-C stops the server gracefully: running deliveries may finish within engine.drain_ms. The
    rest is retried at the next start. A second signal stops the server immediately.

    Examples:

      duetime serve

      duetime serve --data /var/lib/duetime --host 0.0.0.0 --config /etc/duetime.toml
    """
    loaded = config.load(
        file,
        flags={
            "data.dir": None if data is None else str(data),
            "server.host": host,
            "server.port": port,
            "server.grpc_port": grpc_port,
        },
    )
    try:
        from duetime import serving
    except ModuleNotFoundError as error:
        raise BadConfig(
            f"The server needs the package {error.name!r}.", hint="Install it: pip install 'duetime[server]'."
        ) from error
    log_to_stderr()
    _collect_seldom()
    asyncio.run(
        serving.serve(loaded.config, insecure=insecure, started=lambda at: _say(at, loaded.config.data.dir))
    )
    output.words("Stopped. All accepted intents are stored.")


def _collect_seldom() -> None:
    """Collect garbage rarely: a request creates thousands of objects that are freed without the collector,
    and each collection visits all intents in memory."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _say(at: Listening, folder: str) -> None:
    url = _reachable(at.http)
    others = [_reachable(other) for other in at.others]
    output.words(f"Duetime listens on {url}" + "".join(f" and {other}" for other in others))
    if url != at.http:
        output.words("The server listens on every address of this machine.")
    output.words(f"Data in {folder}. API: {url}/docs  Health: {url}/health  Metrics: {url}/metrics")
    for line in _to_try(url, at.asks_for_tokens):
        output.words(line)


def _to_try(url: str, asks_for_tokens: bool) -> list[str]:
    """Print commands that can be copied, with the right port."""
    command, receiver = output.command(), f"http://localhost:{RECEIVER_PORT}"
    body = f'{{"delayMs": 5000, "payload": "hello", "callback": {{"url": "{receiver}"}}}}'
    token = ' -H "x-duetime-token: $DUETIME_TOKEN"' if asks_for_tokens else ""
    words = [
        "Try it in two other terminals: one receives webhooks, the other schedules one in 5 seconds.",
        f"  {command} receive --port {RECEIVER_PORT}",
    ]
    if asks_for_tokens:
        words.append("  export DUETIME_TOKEN=...  # what `duetime token new` printed")
    if url not in _DEFAULTS:
        words.append(f"  export DUETIME_URL={url}")
    return [
        *words,
        f"  curl {url}/v1/intents -H 'content-type: application/json'{token} -d '{body}'",
        f"Then look around with {command} list, why, history, follow, health, top, timeline, shell.",
        "Ctrl-C stops it.",
    ]


def _reachable(url: str) -> str:
    """The URL for clients on this machine. The wildcard address becomes loopback."""
    scheme, _, place = url.partition("://")
    host, _, port = place.rpartition(":")
    return f"{scheme}://localhost:{port}" if host in _EVERYWHERE else url
