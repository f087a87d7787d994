"""A FastAPI application whose Duetime app lives as long as it does. WEB_DUETIME says where, WEB_DATABASE has
an outbox."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import sqlalchemy as sa
from fastapi import FastAPI, Request
from sqlalchemy.orm import Session

from duetime import App
from duetime.contrib.asgi import lifespan
from duetime.contrib.sqlalchemy import Outbox

app = App(os.environ["WEB_DUETIME"])
engine = sa.create_engine(os.environ["WEB_DATABASE"])
outbox = Outbox()


@app.task(name="web.add", tier="FAST")
async def add(a: int, b: int) -> int:
    return a + b


@app.task(name="web.slow")
def slow(path: str) -> str:
    """Ends when the test opens the pipe."""
    print("slow begins", flush=True)
    open(path).close()
    return "ended"


@asynccontextmanager
async def own(api: FastAPI) -> AsyncIterator[dict[str, Any]]:
    outbox.create(engine)
    handle = await add.schedule(1, 1)  # the app is there already
    print("own begins", await handle.result("30s") if "://" not in app.where else 2, flush=True)
    yield {"greeting": "hello"}
    print("own ends", flush=True)


api = FastAPI(lifespan=lifespan(app, own, relays=[outbox.relay(app, engine)]))


@api.post("/add")
async def post_add(a: int, b: int, request: Request) -> dict[str, Any]:
    assert request.state.duetime is app
    handle = await add.schedule(a, b)
    return {"sum": await handle.result("30s"), "greeting": request.state.greeting}


@api.post("/plain")
def post_plain(a: int, b: int) -> int:  # in a thread
    return add.schedule(a, b).wait().result("30s").wait()


@api.post("/order")
def post_order(path: str) -> str:
    with Session(engine) as session, session.begin():
        return outbox.schedule(session, slow, path)
