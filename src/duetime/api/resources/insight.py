"""Handlers for health, the timeline, predictions, autoscaling and replay."""

from __future__ import annotations

from duetime.api.access.auth import Gate, Role
from duetime.api.codec.filters import check_names, number_from, time_from
from duetime.api.http.endpoint import Call
from duetime.api.http.exchange import Answer
from duetime.api.resources.intents import encode
from duetime.api.service import Service
from duetime.engine.reads.meter import Meter
from duetime.errors import BadQuery, MissingParameter, NoSuchIntent
from duetime.insight.autoscale import autoscale
from duetime.insight.chronoscope import look
from duetime.insight.forecast import timeline
from duetime.insight.health import Narrator
from duetime.insight.metrics import Metrics
from duetime.insight.predictions import predictions
from duetime.insight.replay import Replay
from duetime.limits import (
    AUTOSCALE_TARGET_S,
    AUTOSCALE_TARGET_S_MAX,
    HOUR_MS,
    LANE_CHARS_MAX,
    TIMELINE_SLOTS_DEFAULT,
    TIMELINE_SLOTS_MAX,
)
from duetime.wire.log import LogSegments


def lane_named(queue: str) -> str:
    """The lane of a queue; a stream has the name of its lane."""
    lane = queue if queue.startswith(("task:", "stream:")) else f"task:{queue}"
    if not lane.partition(":")[2] or len(lane) > LANE_CHARS_MAX:
        raise BadQuery(f"{queue[:64]!r} is not a queue.", parameter="queue")
    return lane


class HealthRoutes:
    """Handlers of health: liveness, readiness, and health in detail."""

    def __init__(self, narrator: Narrator, gate: Gate) -> None:
        self._narrator = narrator
        self._gate = gate

    async def health(self, call: Call) -> Answer:
        return self._told(call, deep=False)

    async def deep(self, call: Call) -> Answer:
        return self._told(call, deep=True)

    def _told(self, call: Call, *, deep: bool) -> Answer:
        named = self._gate.admits(call.head.headers, Role.read)
        health = self._narrator.health(deep=deep, named=named)
        return _judged(encode(health), health.status)

    async def live(self, call: Call) -> Answer:
        """The process is alive if it answers."""
        return Answer(b'{"status":"UP"}')

    async def ready(self, call: Call) -> Answer:
        readiness = self._narrator.ready()
        return Answer(encode(readiness), 200 if readiness.ready else 503)


def _judged(body: bytes, status: str) -> Answer:
    return Answer(body, 503 if status == "DOWN" else 200)


class InsightRoutes:
    """Handlers of metrics, timeline, predictions and replay."""

    def __init__(self, service: Service, meter: Meter, metrics: Metrics) -> None:
        self._service = service
        self._meter = meter
        self._metrics = metrics

    async def timeline(self, call: Call) -> Answer:
        """The upcoming intents, by default of the next hour."""
        query = call.query
        check_names(query, ("from", "to", "slots"))
        engine = self._service.running
        from_ms = time_from(query, "from")
        from_ms = engine.now_ms() if from_ms is None else from_ms
        to_ms = time_from(query, "to")
        slots = number_from(query, "slots", TIMELINE_SLOTS_DEFAULT, 1, TIMELINE_SLOTS_MAX)
        to_ms = from_ms + HOUR_MS if to_ms is None else to_ms
        found = await timeline(engine, self._meter, self._service.library, from_ms, to_ms, slots)
        return Answer(encode(found))

    async def predictions(self, call: Call) -> Answer:
        """The durations of functions, and the gain of ordering by them."""
        check_names(call.query, ())
        return Answer(encode(predictions(self._service.running)))

    async def autoscale(self, call: Call) -> Answer:
        """The number of workers that each queue, or one queue, needs."""
        query = call.query
        check_names(query, ("queue", "targetSeconds"))
        engine = self._service.running
        target_s = number_from(query, "targetSeconds", AUTOSCALE_TARGET_S, 1, AUTOSCALE_TARGET_S_MAX)
        now_ms = engine.now_ms()
        slots = await self._service.library.slots(now_ms, now_ms + 1000 * target_s, 1000 * target_s)
        coming: dict[str, int] = {}
        for slot in slots:
            coming[slot.queue] = coming.get(slot.queue, 0) + slot.count
        queue = query.get("queue")
        lane = None if queue is None else lane_named(queue)
        return Answer(encode(autoscale(engine, target_s, lane, coming)))

    async def replay(self, call: Call) -> Answer:
        """The history of an intent, or the state of the whole system, at a point in time."""
        query = call.query
        check_names(query, ("intentId", "at"))
        at_ms, id = time_from(query, "at"), query.get("intentId")
        replay = Replay(self._service.running, self._service.library, self._service.show.terms)
        if id is not None:
            life = await replay.life(id, at_ms)
            if life is None:
                raise NoSuchIntent(f"There is no intent with the id {id[:128]!r}.")
            return Answer(encode(life))
        if at_ms is None:
            raise MissingParameter("intentId and at are both missing.", hint="Give one of them, or both.")
        return Answer(encode(await replay.system(at_ms)))

    async def segments(self, call: Call) -> Answer:
        check_names(call.query, ())
        segments = await Replay(self._service.running, self._service.library).segments()
        bytes = sum(segment.bytes for segment in segments)
        return Answer(encode(LogSegments(segments=segments, bytes=bytes)))

    async def metrics(self, call: Call) -> Answer:
        media_type, body = self._metrics.expose(call.header(b"accept") or "")
        return Answer(body, media_type=media_type.encode())

    async def chronoscope(self, call: Call) -> Answer:
        check_names(call.query, ())
        return Answer(encode(look(self._service.running, self._meter)))
