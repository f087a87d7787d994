"""A shop whose requests, functions and webhooks are one trace. FastAPI itself makes the spans of requests.
SHOP_DUETIME is the address of the server."""

from __future__ import annotations

import os

from fastapi import FastAPI, Request
from opentelemetry import baggage, trace

from duetime import App, Client, Retry, current
from duetime.contrib.asgi import lifespan
from duetime.contrib.opentelemetry import OpenTelemetryMiddleware, trace_context

app = App(os.environ.get("SHOP_DUETIME", ":memory:"))
app.add_middleware(OpenTelemetryMiddleware())
api = FastAPI(lifespan=lifespan(app))
tracer = trace.get_tracer("shop")


@app.task(
    name="shop.charge", retry=Retry(max_attempts=2, backoff="fixed", initial_delay="10ms", jitter=False)
)
async def charge(paid: str) -> str:
    """Fails once; then tells the shop with a webhook, and returns its id."""
    if current().attempt == 1:
        raise ConnectionError("declined")
    with tracer.start_as_current_span(f"bank for user {baggage.get_baggage('user')}"):
        async with Client(os.environ["SHOP_DUETIME"]) as client:
            made = await client.create(delay_ms=0, callback={"url": paid}, **trace_context())
    return made.intent_id


@api.post("/orders")
async def order(paid: str) -> str:
    return (await charge.schedule(paid)).id


@api.post("/paid")
async def paid(request: Request) -> dict[str, str | None]:
    return {"baggage": request.headers.get("baggage"), "tracestate": request.headers.get("tracestate")}
