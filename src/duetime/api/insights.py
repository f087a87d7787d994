"""The routes that tell how the server is: health, metrics, the chronoscope."""

from __future__ import annotations

from duetime.api.filters import check_names
from duetime.api.http import Answer, Call
from duetime.api.intents import encode
from duetime.api.service import Service
from duetime.engine.meter import Meter
from duetime.insight.chronoscope import look
from duetime.insight.health import Narrator
from duetime.insight.metrics import Metrics


class HealthRoutes:
    """Handlers: is it alive, is it ready, is it well."""

    def __init__(self, narrator: Narrator) -> None:
        self._narrator = narrator

    async def health(self, call: Call) -> Answer:
        return _judged(encode(health := self._narrator.health()), health.status)

    async def deep(self, call: Call) -> Answer:
        return _judged(encode(health := self._narrator.health(deep=True)), health.status)

    async def live(self, call: Call) -> Answer:
        """Whoever can answer is alive."""
        return Answer(b'{"status":"UP"}')

    async def ready(self, call: Call) -> Answer:
        readiness = self._narrator.ready()
        return Answer(encode(readiness), 200 if readiness.ready else 503)


def _judged(body: bytes, status: str) -> Answer:
    return Answer(body, 503 if status == "DOWN" else 200)


class InsightRoutes:
    """Handlers: what the engine does, in numbers."""

    def __init__(self, service: Service, meter: Meter, metrics: Metrics) -> None:
        self._service = service
        self._meter = meter
        self._metrics = metrics

    async def metrics(self, call: Call) -> Answer:
        media_type, body = self._metrics.expose(call.header(b"accept") or "")
        return Answer(body, media_type=media_type.encode())

    async def chronoscope(self, call: Call) -> Answer:
        check_names(call.query, ())
        return Answer(encode(look(self._service.running, self._meter)))
