"""The metrics of an embedded App in your own registry of prometheus-client.

app = App("data", metrics=True)
REGISTRY.register(DuetimeCollector(app))
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from duetime import wiring
from duetime.client.app.app import App
from duetime.client.app.call import running_loop
from duetime.insight.metrics import METRICS, Exposition
from duetime.limits import SCRAPE_MS


class DuetimeCollector(Collector):
    """Reads the metrics of an app when they are scraped; none while the app is stopped."""

    def __init__(self, app: App) -> None:
        self._app = app

    def describe(self) -> Iterable[Metric]:
        """All metrics without their values: the app need not be started yet."""
        return Exposition(METRICS, lambda: None).describe()

    def collect(self) -> Iterable[Metric]:
        loop = self._app.loop
        if loop is None:
            return []
        if running_loop() is loop:
            return self._read()
        return self._app.call(self._read_there()).wait(SCRAPE_MS / 1000)

    async def _read_there(self) -> list[Metric]:
        return self._read()

    def _read(self) -> list[Metric]:
        return list(wiring.collector(self._app.backend).collect())
