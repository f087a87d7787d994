"""`duetime worker`: runs the functions of an App for a server."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from duetime import config, limits, wiring
from duetime.cli import supervisor
from duetime.cli.ui import output
from duetime.client.app.app import App
from duetime.client.execution.reports import keep_logs
from duetime.client.execution.schemas import listed
from duetime.client.http.address import token_of, url_of
from duetime.client.worker import app_loader as targets
from duetime.errors import BadConfig
from duetime.safe_text import log_to_stderr
from duetime.timefmt import size_bytes

if TYPE_CHECKING:
    from duetime.client.worker.worker import Worker
    from duetime.client.worker.worker_options import WorkerOptions

_CREDITS = limits.CREDITS_MAX // 2


ServersOption = Annotated[
    list[str] | None,
    typer.Option("--server", metavar="URL", help="Server, http:// or grpc://host:port; may be repeated."),
]
QueuesOption = Annotated[
    str | None,
    typer.Option("--queues", metavar="A,B", help="Serve only these queues (default: all queues of the App)."),
]
EntitiesOption = Annotated[
    str | None,
    typer.Option(
        "--entities", metavar="A,B", help="Serve only these entity types (default: all; none with --queues)."
    ),
]
LogsOption = Annotated[
    bool, typer.Option("--logs/--no-logs", help="Store log lines of functions with their intents.")
]
ConcurrencyOption = Annotated[
    int, typer.Option("--concurrency", min=1, max=_CREDITS, help="Maximum concurrent deliveries per process.")
]
ProcessesOption = Annotated[
    int,
    typer.Option("--processes", min=1, max=256, help="Number of worker processes; a dead one is restarted."),
]
DrainOption = Annotated[
    float,
    typer.Option("--drain", metavar="SECONDS", min=0, help="Time limit for running functions at shutdown."),
]
GrpcPortOption = Annotated[
    int | None,
    typer.Option("--grpc-port", min=1, max=65_535, help="gRPC port (default: the HTTP port plus 1)."),
]
TasksPerChildOption = Annotated[
    int | None,
    typer.Option(
        "--max-tasks-per-child", metavar="N", min=0,
        help="Replace a process for CPU-bound functions after this many calls; 0: never.",
    ),
]  # fmt: skip
MemoryPerChildOption = Annotated[
    str | None,
    typer.Option(
        "--max-memory-per-child", metavar="SIZE",
        help="Replace a process for CPU-bound functions if it has more memory after a call: 512M, 2G.",
    ),
]  # fmt: skip
MetricsPortOption = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        min=0,
        max=65_535,
        help="Serve metrics for Prometheus on this port; with --processes, each process on the next one.",
    ),
]
MetricsHostOption = Annotated[
    str, typer.Option("--metrics-host", help="Address for --metrics-port; 0.0.0.0 for all interfaces.")
]


def worker(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="The App as module:variable, such as myapp:app.")
    ],
    servers: ServersOption = None,
    queues: QueuesOption = None,
    entities: EntitiesOption = None,
    logs: LogsOption = True,
    concurrency: ConcurrencyOption = limits.WORKER_CONCURRENCY,
    processes: ProcessesOption = 1,
    token: Annotated[
        str | None, typer.Option("--token", help="Access token (default: DUETIME_TOKEN).")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Worker name (default: host and pid).")] = None,
    drain: DrainOption = 30.0,
    grpc_port: GrpcPortOption = None,
    max_tasks_per_child: TasksPerChildOption = None,
    max_memory_per_child: MemoryPerChildOption = None,
    metrics_port: MetricsPortOption = None,
    metrics_host: MetricsHostOption = "127.0.0.1",
    reload: Annotated[
        bool, typer.Option("--reload", help="Restart when a source file changes (for development).")
    ] = False,
    supervised: Annotated[bool, typer.Option("--supervised", hidden=True)] = False,
) -> None:
    """Run the functions of an App for a server.

    `async def` functions run on the event loop, `def` in threads, CPU-bound functions in processes.

    On SIGTERM or Ctrl-C the worker takes no new work, finishes running functions within --drain, returns the
    rest to the server and exits with 0. A second signal stops it immediately. When the server restarts, the
    worker reconnects by itself.

    Examples:

      duetime worker myapp:app

      duetime worker myapp:app --server http://jobs:7928 --queues email,default --processes 2

      duetime worker myapp:app --reload
    """
    log_to_stderr()
    token = token_of(token)
    memory_bytes_max = None if max_memory_per_child is None else _size(max_memory_per_child)
    if not supervised and (processes > 1 or reload):
        if not reload:
            targets.sources_of(targets.load(target), _names(queues), _names(entities))  # reported once, here
        command = partial(_command, sys.argv[1:], metrics_port)
        code = supervisor.supervise(command, processes, reload=reload)
        raise typer.Exit(code)
    app = targets.load(target)
    options = _options(app, servers, token, grpc_port)
    options.queues, options.entities = targets.sources_of(app, _names(queues), _names(entities))
    options.functions = listed(app.functions, options.queues, options.entities)
    if logs:
        app.functions.reports.keeps_logs = True
        keep_logs()
    options.concurrency, options.drain_s = concurrency, drain
    app.functions.limit_children(max_tasks_per_child, memory_bytes_max)
    options.name = name or f"{socket.gethostname()}:{os.getpid()}"
    output.words(
        f"Worker {options.name}: {_shown(options)}; {concurrency} at a time; "
        f"{', '.join(server.address for server in options.servers)}"
    )
    metrics = None if metrics_port is None else (metrics_host, metrics_port)
    code = asyncio.run(_run(wiring.worker(app, options, metrics), supervised))
    output.words("Stopped.")
    _exit(code)


async def _run(worker: Worker, supervised: bool) -> int:
    for number in (signal.SIGTERM, signal.SIGINT):
        # Does not use the event loop, because a function may block it.
        signal.signal(number, lambda *_: worker.stop())
    if supervised:
        threading.Thread(target=_watch_parent, args=(worker,), daemon=True).start()
    await worker.run()
    return 0


def _watch_parent(worker: Worker) -> None:
    """Exit when stdin closes: the supervisor holds its other end."""
    sys.stdin.buffer.read()
    worker.stop()


def _exit(code: int) -> None:
    """Exit immediately, without waiting for threads."""
    sys.stdout.flush()
    sys.stderr.flush()
    logging.shutdown()
    os._exit(code)


def _names(queues: str | None) -> list[str] | None:
    if queues is None:
        return None
    names = [name.strip() for name in queues.split(",") if name.strip()]
    if not names:
        raise BadConfig("--queues or --entities is empty.", hint="Example: --queues email,default.")
    return names


def _size(text: str) -> int:
    try:
        return size_bytes(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--max-memory-per-child") from None


def _options(app: App, servers: list[str] | None, token: str | None, grpc_port: int | None) -> WorkerOptions:
    try:
        from duetime.client.worker.worker_connection import address_of
        from duetime.client.worker.worker_options import ServerAccess, WorkerOptions
    except ModuleNotFoundError as error:
        raise BadConfig(
            f"A worker needs the package {error.name!r}.", hint="Install it: pip install 'duetime[grpc]'."
        ) from error
    remote = "://" in app.where
    urls = servers or [app.where if remote else config.client_url()]
    addresses = [address_of(url, grpc_port) for url in urls]
    first = urls[0]
    if first.startswith("http"):  # functions schedule on the server that sent their delivery
        app.rewire(url_of(first), token=token, config=app.config)
        remote = True
    return WorkerOptions(
        name="",
        servers=[
            ServerAccess(address, token, url if url.startswith("http") else None)
            for address, url in zip(addresses, urls, strict=True)
        ],
        queues=[],
        concurrency=limits.WORKER_CONCURRENCY,
        drain_s=30.0,
        start_app=remote,
    )


def _shown(options: WorkerOptions) -> str:
    """The queues and entities that it serves, as text."""
    found = [f"queues {', '.join(options.queues)}"] if options.queues else []
    found += [f"entities {', '.join(options.entities)}"] if options.entities else []
    return "; ".join(found)


def _command(arguments: list[str], metrics_port: int | None, number: int) -> list[str]:
    """The command line of one of several processes, by its number. The last value of an option counts."""
    port = ["--metrics-port", str(metrics_port + number)] if metrics_port else []
    return [sys.executable, "-m", "duetime", *arguments, *port, "--supervised"]
