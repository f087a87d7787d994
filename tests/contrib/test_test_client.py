"""A web application with `lifespan(app)`, tested with `TestClient` and the fixtures of the pytest plugin."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

import pytest
import sqlalchemy as sa
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from duetime import App, Middleware, NewCall, Run, Status
from duetime.contrib.asgi import lifespan
from duetime.contrib.sqlalchemy import Outbox
from duetime.errors import Closed
from duetime.testing.plugin import Drain, PlainClock

tenant: ContextVar[str] = ContextVar("tenant", default="nobody")


class Tenants(Middleware):
    def before_schedule(self, call: NewCall) -> None:
        call.headers["x-tenant"] = tenant.get()

    def before_run(self, run: Run) -> None:
        tenant.set(run.context.headers["x-tenant"])


class Shop:
    """An application with an app, an outbox and a lifespan of its own."""

    def __init__(self, database: str) -> None:
        self.app = app = App("never-touched")
        app.add_middleware(Tenants())
        self.sent: list[str] = []
        self.steps: list[str] = []
        outbox, engine = Outbox(), sa.create_engine(database)
        outbox.create(engine)

        @app.task(name="remind")
        async def remind(who: str) -> str:
            self.sent.append(f"{who} of {tenant.get()}")
            return who.upper()

        @asynccontextmanager
        async def own(api: FastAPI) -> AsyncIterator[dict[str, str]]:
            self.steps.append(await (await remind.schedule("me")).result("30s"))
            yield {"greeting": "hello"}
            self.steps.append("own ended")

        self.relay = outbox.relay(app, engine)
        self.api = FastAPI(lifespan=lifespan(app, own, relays=[self.relay]))

        @self.api.post("/later")
        async def later(who: str, request: Request) -> str:
            assert request.state.duetime is app and request.state.greeting == "hello"
            tenant.set("acme")
            return (await remind.delay("7d").schedule(who)).id

        @self.api.post("/now")
        def now(who: str) -> str:
            return remind.schedule(who).wait().result("30s").wait()

        @self.api.post("/outbox")
        def add(who: str) -> str:
            with Session(engine) as session, session.begin():
                return outbox.schedule(session, remind, who)


@pytest.fixture
def shop(tmp_path):
    return Shop(f"sqlite:///{tmp_path / 'shop.db'}")


@pytest.fixture
def duetime_app(shop) -> App:
    found: App = shop.app
    return found


def test_requests_and_virtual_time_work_together(shop: Shop, app: App, clock: PlainClock, drain: Drain):
    with TestClient(shop.api) as client:
        assert shop.steps == ["ME"], "the own lifespan can use the app"
        id = client.post("/later", params={"who": "you"}).json()
        assert client.post("/now", params={"who": "her"}).json() == "HER"
        clock.advance("6d")
        assert "you of acme" not in shop.sent
        clock.advance("1d")
        assert "you of acme" in shop.sent, "the context of the request went with it"
        row = client.post("/outbox", params={"who": "him"}).json()
        shop.relay.drain().wait()
        drain()
        assert app.handle(row).result().wait() == "HIM"
    assert shop.steps == ["ME", "own ended"]
    assert app.handle(id).status().wait() is Status.ACKED, "the plugin still has the app"


def test_two_clients_one_after_the_other(shop: Shop, app: App):
    for _ in range(2):
        with TestClient(shop.api) as client:
            assert client.post("/now", params={"who": "you"}).json() == "YOU"
    assert shop.steps == ["ME", "own ended"] * 2


def test_without_the_plugin_the_lifespan_starts_and_stops_the_app(shop: Shop):
    shop.app.rewire(":memory:")
    with TestClient(shop.api) as client:
        assert client.post("/now", params={"who": "you"}).json() == "YOU"
    with pytest.raises(Closed):
        shop.app.overview().wait()
