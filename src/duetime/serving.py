"""The composition root of a server: builds it from a configuration."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from duetime.api.access import tokens
from duetime.api.access.admission import Admission, held_budget, make_room, troubles
from duetime.api.access.auth import Gate
from duetime.api.access.quotas import Quotas
from duetime.api.access.revocations import Revocations
from duetime.api.codec.intent_decoder import Defaults
from duetime.api.deliveries.claims import Claims
from duetime.api.grpc.connection_limit import GrpcAdmission
from duetime.api.grpc.options import GrpcParts
from duetime.api.http.browsers import Browsers, names_in
from duetime.api.http.endpoint import Load
from duetime.api.http.fast_path import FastPath
from duetime.api.http.pages import document_routes
from duetime.api.http.request_ids import Repeats
from duetime.api.http.router import Route, Router
from duetime.api.http.server import Listening, Parts, Server, Side, check_exposure, on_signals
from duetime.api.http.sse import Events, EventStream
from duetime.api.resources.admin import Admin
from duetime.api.resources.admin_routes import admin_routes, bulk_routes, health_routes
from duetime.api.resources.bulk import BulkRoutes
from duetime.api.resources.deliveries import DeliveryRoutes, delivery_routes
from duetime.api.resources.groups import GroupRoutes, group_routes
from duetime.api.resources.insight import HealthRoutes, InsightRoutes
from duetime.api.resources.intents import Intents
from duetime.api.resources.routes import event_routes, intent_routes
from duetime.api.resources.schedules import ScheduleRoutes, schedule_routes
from duetime.api.service import Service
from duetime.channels.channel import Channel, Tracer
from duetime.channels.pull import StreamChannel
from duetime.channels.webhook.channel import WebhookChannel, WebhookOptions
from duetime.clock import Clock, SystemClock
from duetime.config import Config
from duetime.engine.dispatcher import Dispatcher
from duetime.engine.engine import Engine
from duetime.engine.reads.library import Library
from duetime.engine.reads.meter import Meter
from duetime.insight.health import Narrator
from duetime.insight.metrics import Metrics
from duetime.insight.tracing import make_tracing
from duetime.protocol.terms import Callback, Entity, Stream, Target, Task, Tier
from duetime.store.archive import Archive
from duetime.wiring import STORE_FILE, in_folder, options

_logger = logging.getLogger("duetime")

# The targets that the server calls itself. Workers and subscribers pull the others.
PUSHED = ("callback",)


def make(config: Config, *, insecure: bool = False, clock: Clock | None = None) -> Server:
    """A server that is ready to run."""
    clock = clock if clock is not None else SystemClock()
    folder = Path(config.data.dir)
    known, gate = _gate(config.server.host, folder, insecure=insecure)  # before anything is created on disk
    meter = Meter()
    tracer = None if (tracing := make_tracing()) is None else tracing.begin
    webhooks = _webhooks(config, clock, meter, tracer)
    streams = StreamChannel(clock, tracer)
    meter.connected, meter.begun = streams.connected, streams.begun
    pulled: dict[type[Target], Channel] = dict.fromkeys((Stream, Task, Entity), streams)
    engine = _engine(config, folder, clock, Dispatcher({Callback: webhooks, **pulled}, meter))
    library = Library(Archive(folder / STORE_FILE))
    service = Service(_defaults(config), library, Quotas(known.quota))
    events = Events(service)
    http_door, grpc_door = _doors(config)
    revocations = Revocations(gate)
    claims = Claims(service, streams, revocations)
    doors = partial(troubles, (http_door, grpc_door))
    narrator = Narrator(clock, meter, webhooks.left_alone, doors, known.trouble)
    narrator.follow(engine)
    routes: list[Route] = [
        *intent_routes(Intents(service)),
        *event_routes(EventStream(events, revocations)),
        *group_routes(GroupRoutes(service)),
        *schedule_routes(ScheduleRoutes(service)),
        *bulk_routes(BulkRoutes(service)),
        *delivery_routes(DeliveryRoutes(claims, config.intents.result_bytes_max)),
        *admin_routes(Admin(service), InsightRoutes(service, meter, Metrics(engine, meter))),
        *health_routes(HealthRoutes(narrator, gate)),
    ]
    routes += document_routes(routes)
    load = Load(config.server.requests_max, config.server.request_bytes_max, refused=meter.rejected)
    service.refused = meter.rejected
    repeats = Repeats(clock)
    browsers = _browsers(config)

    grpc = GrpcParts(
        settings=config.server,
        admission=grpc_door,
        service=service,
        gate=gate,
        revocations=revocations,
        load=load,
        repeats=repeats,
        events=events,
        narrator=narrator,
        channel=streams,
        result_bytes_max=config.intents.result_bytes_max,
    )

    def stopping() -> None:
        events.close()
        claims.stop()

    return Server(
        Parts(
            settings=config.server,
            engine=engine,
            router=Router(routes, gate, load, repeats, browsers),
            gate=gate,
            fast_path=FastPath(service, gate, load, browsers),
            admission=http_door,
            ready=partial(_ready, library, service),
            stopping=stopping,
            stopped=library.close,
            sides=_sides(grpc),
            drain_ms=config.engine.drain_ms,
        )
    )


def _ready(library: Library, service: Service, engine: Engine) -> None:
    library.follow(engine)
    service.engine = engine
    engine.schedules.charge = service.quotas.charge


async def serve(config: Config, *, insecure: bool, started: Callable[[Listening], object]) -> None:
    """Run a server until a signal stops it."""
    server = make(config, insecure=insecure)
    on_signals(server.stop)
    await server.run(started)


def _gate(host: str, folder: Path, *, insecure: bool) -> tuple[tokens.Known, Gate]:
    known = tokens.Known(folder)
    known.grants()  # report an unreadable file at startup, not to every caller
    gate = Gate(known.grants, tokens.digest)
    if not insecure:
        check_exposure(host, gate, folder)
    return known, gate


def _defaults(config: Config) -> Defaults:
    intents = config.intents
    return Defaults(tier=Tier[intents.default_tier], payload_bytes_max=intents.payload_bytes_max)


def _doors(config: Config) -> tuple[Admission, GrpcAdmission]:
    """The admission of HTTP and of gRPC: each gets half of the connections, and both share the bytes."""
    most, held = make_room(listeners=2), held_budget(config.server.request_bytes_max)
    return Admission("http", most, held=held), GrpcAdmission("grpc", most, held=held)


def _browsers(config: Config) -> Browsers:
    names = (config.server.host, *names_in(config.server.hosts))
    return Browsers(names, tls=bool(config.server.tls_cert))


def _engine(config: Config, folder: Path, clock: Clock, dispatcher: Dispatcher) -> Engine:
    log, store = in_folder(folder, config)
    return Engine(log, store, clock, dispatcher, options(config, config.store.horizon_ms, PUSHED))


def _sides(parts: GrpcParts) -> list[Side]:
    """The gRPC server, if its packages are installed."""
    try:
        from duetime.api.grpc.server import GrpcSide
    except ModuleNotFoundError as error:
        _logger.info("gRPC is not available: %s. Install it: pip install 'duetime[grpc]'.", error)
        return []
    return [GrpcSide(parts)]


def _webhooks(config: Config, clock: Clock, meter: Meter, tracer: Tracer | None) -> WebhookChannel:
    settings = config.webhooks
    return WebhookChannel(
        WebhookOptions(
            secret=settings.secret,
            secrets_folder=Path(config.data.dir),
            connections_per_host_max=settings.connections_per_host_max,
            refuse_link_local=settings.refuse_link_local,
            result_bytes_max=config.intents.result_bytes_max,
        ),
        clock,
        tracer=tracer,
        slots=meter.host_share,
    )
