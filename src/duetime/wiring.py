"""The composition root of an App: builds a backend from a path or URL and a configuration."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from duetime import limits, private_files
from duetime.channels.local.inline import InlineChannel
from duetime.client.app.backend import Backend
from duetime.client.execution.reports import Reports, words_of
from duetime.client.http.address import url_of
from duetime.client.remote.backend import RemoteBackend
from duetime.clock import Clock, SystemClock
from duetime.config import Config
from duetime.engine.dispatcher import Dispatcher
from duetime.engine.durability.audit import AuditReport, audit
from duetime.engine.durability.backup import Backup
from duetime.engine.durability.backup import backup as make_backup
from duetime.engine.embedded import Embedded
from duetime.engine.engine import Engine
from duetime.engine.options import EngineOptions
from duetime.engine.reads.meter import Meter
from duetime.errors import BadConfig, DuetimeError, InvalidField
from duetime.log.file import FileLog
from duetime.log.log import Log
from duetime.log.memory import MemoryLog
from duetime.protocol.command import Settings
from duetime.protocol.terms import Bare, Entity, Task
from duetime.protocol.view import Progress
from duetime.store.memory import MemoryStore
from duetime.store.sqlite.store import SqliteStore
from duetime.store.store import Store

if TYPE_CHECKING:
    from duetime.client.app.app import App
    from duetime.client.execution.functions import Functions
    from duetime.client.worker.worker import Worker
    from duetime.client.worker.worker_options import FunctionRunner, WorkerOptions
    from duetime.insight.metrics import Metrics

_logger = logging.getLogger("duetime")
MEMORY = ":memory:"
LOG_FOLDER = "log"
STORE_FILE = "store.db"
TOKENS_FILE = "tokens.json"
SECRETS_FILE = "webhook-secrets.json"
# The files of a data folder, as patterns.
_OWN_FILES = (LOG_FOLDER, f"{STORE_FILE}*", TOKENS_FILE, ".tokens*", SECRETS_FILE, ".webhook-secrets*")


class Wired(Struct):
    """A backend, and the settings that the client needs."""

    make_backend: Callable[[], Backend]
    metrics: Callable[[Backend], Awaitable[dict[str, Any]]]
    listen: Callable[[Backend], None]
    """Connects the progress reports of running functions to the started backend."""
    remote: bool
    """Whether workers of a server run the functions, not this process."""
    default_tier: str
    payload_bytes_max: int
    result_bytes_max: int
    threads: int
    processes: int
    tasks_per_child_max: int
    memory_per_child_bytes_max: int


def wire(
    where: str,
    functions: Functions,
    config: Config | None = None,
    clock: Clock | None = None,
    token: str | None = None,
    metrics: bool = False,
) -> Wired:
    """The backend of an App: on a data folder, in memory, or on a server."""
    config = config if config is not None else Config()
    if not __debug__:
        raise BadConfig(
            "Duetime does not run under `python -O` or PYTHONOPTIMIZE.",
            hint="Duetime's assertions protect stored data. Start Python without this option.",
        )
    clock = clock if clock is not None else SystemClock()
    remote = "://" in where
    if token is not None and not remote:
        raise BadConfig("A token is for a server, but this app uses a folder.", hint="Omit the token.")
    url = url_of(where) if remote else ""

    def make_backend() -> Backend:
        if remote:
            return RemoteBackend(url, token, clock.now_ms)
        return Embedded(engine(where, functions, config, clock, Meter() if metrics else None))

    return Wired(
        make_backend=make_backend,
        metrics=_metrics,
        listen=lambda backend: _listen(backend, functions.reports),
        remote=remote,
        default_tier=config.intents.default_tier,
        payload_bytes_max=config.intents.payload_bytes_max,
        result_bytes_max=config.intents.result_bytes_max,
        threads=config.engine.threads,
        processes=config.engine.processes,
        tasks_per_child_max=config.engine.tasks_per_child_max,
        memory_per_child_bytes_max=config.engine.memory_per_child_bytes_max,
    )


def worker(app: App, options: WorkerOptions, metrics: tuple[str, int] | None = None) -> Worker:
    """A worker for the functions of an app. It runs them as an engine in this process would.

    `metrics`: the host and the port at which it serves its metrics for Prometheus.
    """
    from duetime.client.worker.unknown_functions import Strangers
    from duetime.client.worker.worker import Worker

    functions = app.functions
    strangers = Strangers(functions.messages)
    find = functions.find
    runner: FunctionRunner = InlineChannel(
        lambda delivery: find(delivery) or strangers, functions.reports.with_logs
    )
    if metrics is not None:
        runner = _metered_runner(runner, options.concurrency, *metrics)
    functions.widen(min(options.concurrency, limits.WORKER_THREADS_MAX))
    return Worker(app, runner, options)


def _listen(backend: Backend, reports: Reports) -> None:
    """Stores progress reports in the engine of this process. For a server, its workers send them."""
    if not isinstance(backend, Embedded):
        return
    loop, running = asyncio.get_running_loop(), backend.engine

    def hear() -> None:
        now_ms = running.now_ms()
        words = words_of(reports.take().items())
        with contextlib.suppress(DuetimeError):  # it has stopped in the meantime
            running.report("", {place: Progress(*word, now_ms) for place, word in words.items()})

    def ask() -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(hear)

    reports.on_news(ask)


async def _metrics(backend: Backend) -> dict[str, Any]:
    """The metrics of an engine in this process, or of a server."""
    if isinstance(backend, RemoteBackend):
        return await backend.metrics()
    from duetime.insight.metric_table import METRICS
    from duetime.insight.metric_values import source_of, values_of

    running, meter = _metered(backend)
    return values_of(METRICS, source_of(running, meter))


def _metered(backend: Backend) -> tuple[Engine, Meter]:
    if not isinstance(backend, Embedded):
        raise InvalidField("The app uses a server.", hint="Scrape /metrics of the server.")
    meter = backend.engine.meter
    if meter is None:
        raise InvalidField("The app counts no metrics.", hint="Create it with App(..., metrics=True).")
    return backend.engine, meter


def collector(backend: Backend) -> Metrics:
    """The metrics of an engine in this process, for prometheus-client. Read it on the app's event loop."""
    from duetime.insight.metrics import Metrics

    return Metrics(*_metered(backend))


def _metered_runner(inner: FunctionRunner, concurrency: int, host: str, port: int) -> FunctionRunner:
    """The runner, with its metrics served for Prometheus at this address."""
    try:
        from prometheus_client import start_http_server

        from duetime.insight.metrics import Exposition
    except ModuleNotFoundError as error:
        raise BadConfig(
            f"--metrics-port needs the package {error.name!r}.",
            hint="Install it: pip install 'duetime[metrics]'.",
        ) from error
    from duetime.insight.worker_metrics import WORKER_METRICS, MeteredRunner, WorkerSource

    runner = MeteredRunner(inner)
    source = WorkerSource(runner, concurrency)
    try:
        server, _ = start_http_server(port, host, Exposition(WORKER_METRICS, lambda: source).registry)
    except OSError as error:
        raise BadConfig(
            f"Metrics cannot be served at {host}:{port}: {error.strerror}.",
            hint="Give another --metrics-port.",
        ) from error
    _logger.info("Metrics are served at http://%s:%d/metrics.", host, server.server_port)
    return runner


def engine(
    where: str, functions: Functions, config: Config, clock: Clock, meter: Meter | None = None
) -> Engine:
    """An engine in this process."""
    inline = InlineChannel(functions.find, functions.reports.with_logs)
    dispatcher = Dispatcher({Task: inline, Entity: inline, Bare: inline}, meter)
    log, store = _in_memory() if where == MEMORY else in_folder(Path(where), config)
    # Without a disk, all intents stay in memory.
    horizon_ms = limits.TIME_MS_MAX if where == MEMORY else config.store.horizon_ms
    return Engine(log, store, clock, dispatcher, options(config, horizon_ms))


def _in_memory() -> tuple[Log, Store]:
    return MemoryLog(), MemoryStore()


def in_folder(folder: Path, config: Config) -> tuple[Log, Store]:
    """The log and the store of a data folder."""
    log = FileLog(
        folder / LOG_FOLDER,
        segment_bytes_max=config.log.segment_bytes_max,
        history_bytes=config.log.history_bytes,
    )
    private_files.tighten(folder, _OWN_FILES)
    # The log creates and locks the folder; only then is the store opened and migrated.
    return log, SqliteStore(folder / STORE_FILE, at_load=True)


def verify(folder: Path) -> AuditReport:
    """Check every byte of a data folder, without locking it."""
    return audit(folder / LOG_FOLDER, folder / STORE_FILE)


def backup(folder: Path, to: Path) -> Backup:
    """Copy a data folder, even while its engine runs."""
    return make_backup(
        folder / LOG_FOLDER, folder / STORE_FILE, [folder / TOKENS_FILE, folder / SECRETS_FILE], to
    )


class TokenRow(Struct, rename="camel"):
    """The attributes of a token."""

    name: str
    role: str
    """One role, or several separated by commas."""
    rate: str | None = None
    burst: int | None = None
    queues: tuple[str, ...] = ()
    entity_types: tuple[str, ...] = ()


def new_token(folder: Path, row: TokenRow) -> str:
    """Create a token for the server on this folder. Only its hash is stored."""
    from duetime.api.access import tokens

    return tokens.new(folder, **asdict(row))


def tokens(folder: Path) -> list[TokenRow]:
    """The tokens for the server on this folder."""
    from duetime.api.access import tokens
    from duetime.api.access.auth import role_text

    found: list[TokenRow] = []
    for token in tokens.read(folder):
        quota = token.quota()
        burst = quota.burst if quota is not None else None
        found.append(
            TokenRow(token.name, role_text(token.roles), token.rate, burst, token.queues, token.entity_types)
        )
    return found


def revoke_token(folder: Path, name: str) -> bool:
    """Revoke a token, even while the server runs. Returns whether another token exists."""
    from duetime.api.access import tokens

    return tokens.revoke(folder, name)


class SecretRow(Struct, rename="camel"):
    """An endpoint with its own secrets. The secrets themselves are not shown."""

    url: str
    secrets: int


def new_secret(folder: Path, url: str) -> tuple[str, SecretRow]:
    """Create a secret that signs the webhooks to an endpoint of the server on this folder."""
    from duetime.channels.webhook import secrets

    made, endpoint = secrets.add(folder, url)
    return made, SecretRow(endpoint.url, len(endpoint.secrets))


def secrets(folder: Path) -> list[SecretRow]:
    """The endpoints with their own secrets."""
    from duetime.channels.webhook import secrets

    return [SecretRow(each.url, len(each.secrets)) for each in secrets.read(folder)]


def retire_secret(folder: Path, url: str) -> SecretRow:
    """Keep only the newest secret of an endpoint."""
    from duetime.channels.webhook import secrets

    endpoint = secrets.retire(folder, url)
    return SecretRow(endpoint.url, len(endpoint.secrets))


def delete_secret(folder: Path, url: str) -> None:
    """Delete the secrets of an endpoint."""
    from duetime.channels.webhook import secrets

    secrets.delete(folder, url)


def options(config: Config, horizon_ms: int, pushed: tuple[str, ...] = Settings().pushed) -> EngineOptions:
    """The options of the engine, from the configuration."""
    intents, limit, tiers = config.intents, config.limits, config.tiers
    return EngineOptions(
        settings=Settings(
            pending_max=limit.pending_max,
            lane_pending_max=limit.lane_pending_max,
            entity_pending_max=limit.entity_pending_max,
            entities_max=limit.entities_max,
            past_tolerance_ms=intents.past_tolerance_ms,
            key_window_ms=intents.key_window_ms,
            retention_ms=intents.retention_ms,
            dead_letter_retention_ms=intents.dead_letter_retention_ms,
            retention_count=intents.retention_count,
            pushed=pushed,
        ),
        permits=(tiers.ultra, tiers.fast, tiers.high, tiers.standard, tiers.economy),
        horizon_ms=horizon_ms,
        flush_ms=config.log.flush_ms,
        checkpoint_ms=config.store.checkpoint_ms,
        checkpoint_changes=limits.CHECKPOINT_CHANGES,
        drain_ms=config.engine.drain_ms,
        disk_reserve_bytes=config.log.disk_reserve_bytes,
        lateness_guard=limit.lateness_guard,
    )
