"""The metrics of an embedded App: as plain values, and in a registry of prometheus-client."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from duetime import App, Retry, errors
from duetime.contrib.prometheus import DuetimeCollector
from tests.integration.asynchronous import asynchronous
from tests.integration.rig import SOON


@pytest.fixture
def app(tmp_path):
    return App(str(tmp_path / "data"), metrics=True)


def tasks_of(app: App):
    @app.task(name="add", queue="sums")
    async def add(x: int, y: int) -> int:
        return x + y

    @app.task(name="breaks", retry=Retry(max_attempts=1))
    def breaks() -> None:
        raise ValueError("no")

    return add, breaks


async def work(app: App, add, breaks) -> None:
    for handle in await add.schedule_many([(1, 2), (3, 4)]):
        await handle.result(SOON)
    with pytest.raises(errors.NotAcked):
        await (await breaks.schedule()).result(SOON)


def sample(text: str, name: str, **labels: str) -> float:
    found = [
        each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
        if each.name == name and labels.items() <= each.labels.items()
    ]
    return sum(found)


def values(metrics: dict[str, Any], name: str) -> dict[tuple[str, ...], Any]:
    return {tuple(each["labels"].values()): each for each in metrics[name]["values"]}


@asynchronous
async def test_metrics_are_counted_by_queue_and_function(app):
    functions = tasks_of(app)
    async with app:
        await work(app, *functions)
        metrics = await app.metrics()
    ended = values(metrics, "duetime_function_deliveries_total")
    assert {labels: each["value"] for labels, each in ended.items()} == {
        ("sums", "add", "done"): 2,
        ("default", "breaks", "failed"): 1,
    }
    assert values(metrics, "duetime_function_duration_seconds")["sums", "add"]["count"] == 2
    assert metrics["duetime_intents_completed_total"]["type"] == "counter"
    assert sum(each["value"] for each in metrics["duetime_intents_completed_total"]["values"]) == 2


@asynchronous
async def test_a_collector_reads_them_on_the_apps_own_loop(app):
    functions, registry = tasks_of(app), CollectorRegistry()
    registry.register(DuetimeCollector(app))
    assert generate_latest(registry) == b"", "the app is not started"
    async with app:
        await work(app, *functions)
        text = generate_latest(registry).decode()
    assert sample(text, "duetime_function_deliveries_total", function="add") == 2
    assert sample(text, "duetime_function_duration_seconds_count", queue="sums") == 2
    assert generate_latest(registry) == b"", "the app is stopped"


def test_a_collector_reads_them_from_another_thread(app):
    add, breaks = tasks_of(app)
    registry = CollectorRegistry(auto_describe=True)
    registry.register(DuetimeCollector(app))
    with app:
        app.call(work(app, add, breaks)).wait()
        text = generate_latest(registry).decode()
    assert sample(text, "duetime_function_deliveries_total", outcome="failed", function="breaks") == 1


def test_an_app_that_counts_nothing_says_how_to_count():
    app = App(":memory:")
    with app, pytest.raises(errors.InvalidField, match="counts no metrics") as refused:
        app.metrics().wait()
    assert "metrics=True" in refused.value.hint
    with pytest.raises(errors.Closed):
        app.metrics().wait()


def test_a_collector_of_an_app_on_a_server_names_the_server_instead(tmp_path):
    from tests.http.server import ServerProcess

    with ServerProcess(tmp_path / "data") as server, App(server.url) as app:
        metrics = app.metrics().wait()
        assert metrics["duetime_epoch"]["values"] == [{"labels": {}, "value": 1}]
        with pytest.raises(errors.InvalidField, match="uses a server"):
            generate_latest(_registry(app))


def _registry(app: App) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(DuetimeCollector(app))
    return registry
