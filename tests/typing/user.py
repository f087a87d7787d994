"""A user's file, as a type checker sees it. Checked by test_typing.py, never run."""

from __future__ import annotations

from typing import Any, assert_type

from duetime import App, Bound, Call, Failure, Flow, Handle, Planned, Status, Task, Transition
from duetime.testing.plugin import Drain, PlainClock

app = App("data")


@app.task
async def add(a: int, b: int = 1) -> int:
    return a + b


@app.task
def greet(name: str) -> str:
    return name


@app.task(queue="mail", tier="HIGH")
async def send(to: str, *, text: str = "") -> None: ...


@app.task(retry_on=(ConnectionError, TimeoutError), give_up_on=ValueError, soft_timeout="5s")
def fetch(url: str) -> str:
    return url


@app.entity(retry_on=[ConnectionError], soft_timeout=5, name="Cart")
class Cart:
    def __init__(self, id: str) -> None: ...


@app.every("5m", jitter="5s")
@app.task
async def again(a: int) -> int:
    return a


@app.cron("0 9 * * *", zone="Europe/Paris")
def morning(name: str) -> str:
    return name


@app.task
async def total(numbers: list[int], more: int = 0) -> int:
    return sum(numbers) + more


@app.task
async def pad(text: str, width: int) -> str:
    return text.rjust(width)


@app.task
async def told(failure: Failure) -> None: ...


async def flows() -> None:
    assert_type(add.bind(1), Bound[int])
    assert_type(greet.bind("you") | pad.bind(9), Flow[str])
    assert_type(greet.bind("you") | pad.bind(width=9) | greet.bind(), Flow[str])
    assert_type(add.bind(1) | [add.bind(), add.bind(b=2)] | total.bind(more=3), Flow[int])
    assert_type([add.bind(1), add.bind(2)] | total.bind(), Flow[int])
    chain = await app.chain(greet.bind("you") | pad.bind(9), on_failure=told.bind())
    assert_type(await chain.result(), str)
    assert_type(await (await (greet.bind("you") | pad.bind(9)).schedule()).result(), str)
    group = await app.group([add.bind(1), add.bind(1) | add.bind()], then=total.bind())
    assert_type(await group.result(), int)


async def use() -> None:
    assert_type((await again.schedule(1)).result().wait(), int)
    assert_type((await morning.schedule("you")).result().wait(), str)
    assert_type(add.schedule(1, b=2), Call[Handle[int]])
    assert_type((await fetch.schedule("x")).result().wait(), str)
    handle = await add.schedule(1)
    assert_type(handle, Handle[int])
    assert_type(await handle.result(), int)
    assert_type(await handle.result("5s"), int)
    assert_type((await greet.schedule("you")).result().wait(), str)
    assert_type(await (await send.schedule("you", text="hi")).result(), None)
    many = await add.schedule_many([(1, 2)])
    assert_type(many, list[Handle[int]])
    later = add.delay("30d")
    assert_type(await (await later.schedule(1, 2)).result(), int)
    assert_type(await (await add.at(1_900_000_000).options(tier="FAST").schedule(1)).result(), int)


def test_of_a_user(app: App, clock: PlainClock, drain: Drain) -> None:
    """The fixtures of the pytest plugin."""
    assert_type(app.metrics().wait(), dict[str, Any])
    assert_type(clock.now_ms(), int)
    assert_type(clock.advance("30d"), None)
    assert_type(drain(), None)


@app.on_failure
async def failed(change: Transition) -> None:
    assert_type(change.error, str | None)


@app.on_dead_letter
def dead(change: Transition) -> None:
    assert_type(change.tags, dict[str, str])


assert_type(dead(Transition(intent_id="i", status=Status.DEAD_LETTERED)), None)


def kinds(task: Task[[str], str], planned: Planned[[int, int], int]) -> None: ...


kinds(greet, add.delay(1))
