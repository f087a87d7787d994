"""A FastAPI application that may start before its Duetime server."""

from __future__ import annotations

import os

from fastapi import FastAPI, HTTPException

from duetime import App
from duetime.contrib.asgi import lifespan
from duetime.errors import Unreachable

app = App(os.environ["WEB_DUETIME"])


@app.every("1h", id="hourly")
@app.task(name="early.tick")
def tick() -> None: ...


api = FastAPI(lifespan=lifespan(app))


@api.post("/later")
async def later() -> str:
    try:
        return (await tick.delay("1h").schedule()).id
    except Unreachable as error:
        raise HTTPException(503, error.message) from error
