"""`duetime serve`: the server in this process."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from duetime import config
from duetime.cli import output
from duetime.cli.receive import PORT as RECEIVER_PORT
from duetime.errors import BadConfig

if TYPE_CHECKING:
    from duetime.api.server import Listening


def serve(
    data: Annotated[Path | None, typer.Option("--data", metavar="DIR", help="The data folder.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="Where to listen; loopback by default.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="The port of HTTP; 0: any free one.")] = None,
    grpc_port: Annotated[
        int | None, typer.Option("--grpc-port", help="The port of gRPC; 0: any free one.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Read this file.")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen beyond loopback without any token.")
    ] = False,
) -> None:
    """Run the server: HTTP on port 7928, gRPC on port 7929, data in ./duetime-data.

    SIGTERM or Ctrl-C stops it gracefully: what is in flight is finished within engine.drain_ms, the rest is
    handed back and goes on at the next start. A second one stops it at once.

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
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    asyncio.run(
        serving.serve(loaded.config, insecure=insecure, started=lambda at: _say(at, loaded.config.data.dir))
    )
    output.words("Stopped; everything accepted is written down.")


def _say(at: Listening, folder: str) -> None:
    url, command, receiver = at.http, output.command(), f"http://localhost:{RECEIVER_PORT}"
    output.words(f"Duetime listens on {url}" + "".join(f" and {other}" for other in at.others))
    output.words(f"Data in {folder}. API: {url}/docs  Health: {url}/health  Metrics: {url}/metrics")
    body = f'{{"delayMs": 5000, "payload": "hello", "callback": {{"url": "{receiver}"}}}}'
    output.words(
        "Try it in two other terminals: one that receives, and one that asks for a webhook in 5 seconds.\n"
        f"  {command} receive --port {RECEIVER_PORT}\n"
        f"  curl {url}/v1/intents -H 'content-type: application/json' -d '{body}'\n"
        f"Then look around with {command} list, why, history, follow, health, top, timeline, shell.\n"
        "Ctrl-C stops it."
    )
