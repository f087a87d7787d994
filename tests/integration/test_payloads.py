"""What goes in comes out: arguments and results of every kind, through the log, the store and a restart."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from msgspec import Struct
from pydantic import BaseModel

from duetime import App, errors
from tests.integration.rig import SOON


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int


class Order(Struct):
    id: UUID
    lines: list[Point]


class Card(BaseModel):
    number: str
    expires: date


VALUES: list[tuple[Any, Any]] = [
    (int, 7),
    (str, "ä€😀\n\x00"),
    (float, 0.1),
    (bool, False),
    (dict, {"a": [1, None, {"b": []}]}),
    (list[int], [1, 2]),
    (bytes, b"\x00\xff"),
    (datetime, datetime(2030, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
    (timedelta, timedelta(hours=1)),
    (UUID, UUID(int=5)),
    (Decimal, Decimal("1.10")),
    (Colour, Colour.RED),
    (Point, Point(1, -2)),
    (Order, Order(UUID(int=1), [Point(0, 0)])),
    (Card, Card(number="4242", expires=date(2031, 1, 1))),
    (set[int], {1, 2}),
    (tuple[int, str], (1, "a")),
    (int | None, None),
]


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=lambda each: getattr(each, "__name__", ""))
def test_a_value_comes_back_as_its_type(tmp_path, kind, value):
    async def echo(value, *, again=None):
        got.append((value, again))
        return value

    got: list[Any] = []
    echo.__annotations__ = {"value": kind, "again": kind, "return": kind}

    async def main() -> None:
        app = App(str(tmp_path / "data"))
        task = app.task(name="echo")(echo)
        async with app:
            handle = await task.schedule(value, again=value)
            result = await handle.result(SOON)
            assert result == value and type(result) is type(value)
            assert got == [(value, value)] and type(got[0][0]) is type(value)
        async with app:  # what is kept is kept across a restart
            assert await handle.result(SOON) == value

    asyncio.run(main())


class Opaque:
    pass


@pytest.fixture
def app(tmp_path):
    app = App(str(tmp_path / "data"))
    return app


def test_an_argument_that_cannot_be_stored_is_refused_by_name(app):
    @app.task(name="send")
    async def send(to: str, what: Any = None) -> None: ...

    async def main() -> None:
        async with app:
            with pytest.raises(errors.InvalidField, match="Argument 2 of send cannot be stored: Opaque") as e:
                await send.schedule("a", Opaque())
            assert "dataclasses" in e.value.hint
            with pytest.raises(errors.InvalidField, match="Argument 'what' of send"):
                await send.schedule("a", what=Opaque())
            with pytest.raises(errors.InvalidField, match="cannot be called with these arguments"):
                await send.schedule()
            with pytest.raises(errors.InvalidField, match="cannot be called with these arguments"):
                await send.schedule("a", "b", "c")
            with pytest.raises(errors.TooLarge, match="262144"):
                await send.schedule("x" * 300_000)
            assert await app.find() == [], "nothing was stored"

    asyncio.run(main())


def test_a_result_that_cannot_be_stored_is_a_dead_letter_with_the_reason(app):
    @app.task
    async def opaque() -> Any:
        return Opaque()

    @app.task
    def huge() -> str:
        return "x" * 300_000

    async def main() -> None:
        async with app:
            with pytest.raises(errors.NotAcked, match="Opaque cannot be written as JSON"):
                await (await opaque.schedule()).result(SOON)
            with pytest.raises(errors.NotAcked, match="300002 bytes; 262144 are kept"):
                await (await huge.schedule()).result(SOON)

    asyncio.run(main())


def test_a_payload_that_does_not_fit_the_function_any_more_is_rejected(tmp_path):
    folder = str(tmp_path / "data")

    async def main() -> None:
        old = App(folder)

        @old.task(name="pay")
        async def pay(amount: str) -> None: ...

        await old.start()
        handle = await pay.delay("300ms").schedule("ten")
        await old.stop(drain_ms=0)
        new = App(folder)

        @new.task(name="pay")
        async def pay_a_point(amount: Point) -> None: ...

        async with new:
            with pytest.raises(errors.NotAcked, match="the payload does not fit the function"):
                await new.handle(handle.id).result(SOON)

    asyncio.run(main())


def test_a_large_payload_is_kept_whole(app):
    @app.task
    async def measure(text: str) -> int:
        return len(text)

    async def main() -> None:
        async with app:
            handles = [await measure.schedule("x" * 200_000) for _ in range(5)]
            assert [await handle.result(SOON) for handle in handles] == [200_000] * 5

    asyncio.run(main())
