"""Options that name arguments: limits, keys, fairness keys and tags, filled when a call is scheduled."""

from __future__ import annotations

import asyncio
import re
from enum import Enum
from uuid import UUID

import pytest

from duetime import App, Limit, Middleware, Unique, errors
from tests.integration.rig import SOON


class Plan(Enum):
    FREE = "free"


@pytest.fixture
def app(tmp_path):
    return App(str(tmp_path / "data"))


def run(app, main):
    async def started():
        async with app:
            await main()

    asyncio.run(started())


def functions(app):
    @app.task(
        limits=[Limit(key="tenant:{tenant}", concurrency=2), {"key": "all", "rate": "1000/s"}],
        fairness_key="{tenant}",
        tags={"tenant": "{tenant}", "plan": "{plan}-{size}", "kind": "{{bill}}"},
    )
    async def bill(tenant: str, size: int = 3, *, plan: Plan = Plan.FREE) -> str:
        return tenant

    @app.task(key="order:{order_id}")
    async def ship(order_id: UUID | int) -> str:
        return str(order_id)

    @app.task(unique=Unique("report:{name}"), tags={"name": "{name}"})
    async def report(number: int, name: str = "all") -> int:
        return number

    return bill, ship, report


def test_options_are_filled_from_the_arguments(app):
    bill, _, _ = functions(app)

    async def main():
        view = await (await bill.delay("1h").schedule("acme", plan=Plan.FREE)).view()
        assert [limit.key for limit in view.limits] == ["tenant:acme", "all"]
        assert view.fairness_key == "acme"
        assert view.tags == {"tenant": "acme", "plan": "free-3", "kind": "{bill}"}
        other = await (await bill.schedule("b", 4)).view()
        assert (other.fairness_key, other.tags["plan"]) == ("b", "free-4")

    run(app, main)


def test_keys_are_filled_from_the_arguments(app):
    _, ship, report = functions(app)

    async def main():
        late = ship.delay("1h")
        first = await late.schedule(1)
        assert (await first.view()).idempotency_key == "order:1"
        assert (await late.schedule(1)).id == first.id
        assert (await late.schedule(2)).id != first.id
        id = UUID(int=7)
        assert (await (await late.schedule(id)).view()).idempotency_key == f"order:{id}"
        one = await report.delay("1h").schedule(1)
        view = await one.view()
        assert view.unique is not None and view.unique.key == "report:all" and view.tags == {"name": "all"}
        assert (await report.delay("1h").schedule(2)).id == one.id, "the key is held"
        assert (await report.delay("1h").schedule(2, "b")).id != one.id

    run(app, main)


def test_many_calls_have_options_of_their_own(app):
    bill, ship, _ = functions(app)

    async def main():
        handles = await bill.delay("1h").schedule_many([(f"t{n % 3}",) for n in range(2_500)])
        views = [await handle.view() for handle in handles[:3]]
        assert [view.fairness_key for view in views] == ["t0", "t1", "t2"]
        twice = await ship.delay("1h").schedule_many([(1,), (2,), (1,)])
        assert twice[0].id == twice[2].id != twice[1].id
        assert await bill.schedule_many([]) == []

    run(app, main)


def test_options_that_are_given_later_are_taken_as_they_are(app):
    bill, ship, _ = functions(app)

    async def main():
        view = await (await ship.options(key="{order_id}", delay="1h").schedule(1)).view()
        assert view.idempotency_key == "{order_id}"
        view = await (await bill.options(tags={"a": "{tenant}"}, delay="1h").schedule("x")).view()
        assert view.tags == {"a": "{tenant}"} and view.fairness_key == "x"

    run(app, main)


def test_options_of_groups_and_chains_are_filled(app):
    bill, _, _ = functions(app)

    @app.task(tags={"more": "{more}"})
    async def follow(text: str, more: int) -> str:
        return f"{text}{more}"

    @app.task(tags={"text": "{text}"})
    async def wrong(text: str) -> str:
        return text

    async def main():
        chain = await app.chain(bill.bind("a") | follow.bind(5))
        assert await chain.result(SOON) == "a5"
        assert [(await step.view()).tags.get("more") for step in chain.steps] == [None, "5"]
        group = await app.group([bill.bind("a"), bill.bind("b")], then=follow.bind("x", 1))
        assert [(await group.member(n).view()).fairness_key for n in (0, 1)] == ["a", "b"]
        with pytest.raises(errors.InvalidField, match="'text', which is the result of the step before"):
            bill.bind("a") | wrong.bind()

    run(app, main)


def test_options_follow_the_arguments_that_middleware_changes(app):
    bill, _, _ = functions(app)

    class Upper(Middleware):
        def before_schedule(self, call):
            assert call.tags["tenant"] == call.args[0]
            call.args = [call.args[0].upper()]

    app.add_middleware(Upper())

    async def main():
        assert (await (await bill.schedule("a")).view()).fairness_key == "A"
        many = await bill.schedule_many([("b",), ("c",)])
        assert [(await handle.view()).fairness_key for handle in many] == ["B", "C"]
        chain = await app.chain(bill.bind("d"))
        assert (await chain.view()).fairness_key == "D"

    run(app, main)


def test_entities_and_schedules_have_them_too(app):
    bill, _, _ = functions(app)

    class Cart:
        def __init__(self, id):
            pass

        def add(self, item: str) -> None: ...
        def remove(self, item: str, count: int = 1) -> None: ...

    carts = app.entity(Cart, tags={"item": "{item}"}, name="cart")
    app.every("1h", args=("acme",), id="hourly")(bill)

    async def main():
        view = await (await carts("1").tell("add", "pen")).view()
        assert view.tags == {"item": "pen"}
        view = await (await carts("1").message("remove", delay="1h").schedule(item="cup")).view()
        assert view.tags == {"item": "cup"}
        assert (await app.schedules.get("hourly")).intent.fairness_key == "acme"
        made = await app.schedules.put(bill, ("other",), every="1h", id="put")
        assert made.intent.tags["tenant"] == "other"

    run(app, main)


@pytest.mark.parametrize(
    ("options", "error", "hint"),
    [
        ({"key": "a:{tennant}"}, "key names {tennant}, and f has no such parameter.", "are: tenant, size."),
        ({"tags": {"a": "{more}"}}, "tags names {more}", "tenant, size"),
        ({"limits": [Limit(key="{x}", rate="1/s")]}, "limits names {x}", "tenant, size"),
        ({"unique": Unique("{x}")}, "unique names {x}", "tenant, size"),
        ({"key": "a:{tenant.name}"}, "'a:{tenant.name}' cannot be read", "Write {name}"),
        ({"key": "a:{tenant!r}"}, "cannot be read", "Write {name}"),
        ({"key": "a:{"}, "cannot be read", "Write {name}"),
        ({"key": "a}"}, "cannot be read", "Write {name}"),
        ({"fairness_key": "{}"}, "cannot be read", "Write {name}"),
    ],
)
def test_mistakes_are_found_at_registration(app, options, error, hint):
    def f(tenant: str, size: int = 1, *more: str) -> None: ...

    with pytest.raises(errors.InvalidField, match=re.escape(error)) as caught:
        app.task(name="f", **options)(f)
    assert hint in str(caught.value)
    app.task(name="f")(f)  # nothing was registered


def test_a_message_without_the_argument_is_found_at_registration(app):
    class Cart:
        def add(self, item: str) -> None: ...
        def clear(self) -> None: ...

    with pytest.raises(errors.InvalidField, match=re.escape("{item}, and cart.clear has no such")) as caught:
        app.entity(Cart, tags={"item": "{item}"}, name="cart")
    assert "Its parameters are: none." in str(caught.value)


def test_arguments_that_are_no_text_are_refused(app):
    bill, ship, _ = functions(app)

    async def main():
        for value, what in ((None, "None"), ([1], "of the type list")):
            with pytest.raises(
                errors.InvalidField, match=f"key names the argument 'order_id', which is {what}"
            ):
                await ship.schedule(value)
        with pytest.raises(errors.InvalidField, match="cannot be called with these arguments"):
            await ship.schedule()
        with pytest.raises(errors.InvalidField, match="longer than 256 characters"):
            await bill.schedule("x" * 300)
        assert await app.find() == []

    run(app, main)
