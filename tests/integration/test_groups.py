"""Chains and groups with an App: in this process, and scheduled by functions that run."""

from __future__ import annotations

import asyncio

import pytest

from duetime import App, Context, Group, Parent, Reject, Retry, Status, current, errors
from tests.integration.rig import SOON

ONCE = Retry(max_attempts=1)


def run(coroutine):
    return asyncio.run(coroutine)


@pytest.fixture
def app(tmp_path):
    return App(str(tmp_path / "data"))


def functions(app):
    @app.task
    async def double(number: int) -> int:
        return 2 * number

    @app.task
    async def total() -> int:
        return int(sum(parent.result for parent in await app.parents()))

    @app.task
    def plain_total(more: int = 0) -> int:
        parents: list[Parent] = app.parents().wait(10)
        return more + int(sum(parent.result for parent in parents))

    @app.task(retry=ONCE)
    async def fails() -> None:
        raise Reject("never")

    @app.task
    async def ends() -> list[str]:
        return [parent.status.name for parent in await app.parents() if parent.status is not None]

    return double, total, plain_total, fails, ends


def test_a_group_and_its_results(app):
    double, total, plain_total, _, _ = functions(app)

    async def main():
        async with app:
            group = await app.group([double.bind(n) for n in range(1_000)], then=total.bind())
            assert await group.result(SOON) == 999_000
            found = await group.progress()
            assert (found.members, found.joined, found.ended, found.left) == (1_000, 1_000, 1_000, 0)
            assert await group.member(7).result(SOON) == 14
            parents = await group.parents()
            assert (
                parents[3] == Parent(intent_id=f"{group.id}.3", status=Status.ACKED, result=6)
                and len(parents) == 1_000
            )
            with pytest.raises(errors.InvalidField):
                group.member(1_000)
            plain = await app.group([double.bind(1)], then=plain_total.bind(more=5))
            assert await plain.result(SOON) == 7

    run(main())


def test_a_chain_and_its_results(app):
    double, total, plain_total, _, _ = functions(app)

    async def main():
        async with app:
            last = await app.chain(double.bind(4), plain_total.bind(1), total.bind())
            assert await last.result(SOON) == 9
            assert [await step.result(SOON) for step in last.steps] == [8, 9, 9]
            assert [parent.intent_id for parent in await last.parents()] == [last.steps[1].id]
            assert last.id == last.steps[-1].id

    run(main())


def test_in_plain_programs(app):
    double, total, *_ = functions(app)
    with app:
        group = app.group([double.bind(1), double.bind(2)], then=total.bind()).wait(10)
        assert group.result(SOON).wait(10) == 6
        assert app.chain(double.bind(3), total.bind()).wait(10).result(SOON).wait(10) == 6


def test_a_step_may_come_after_a_group(app):
    double, total, *_ = functions(app)

    async def main():
        async with app:
            group = await app.group([double.bind(n) for n in (1, 2)], then=total.bind())
            chain = await app.chain(total.options(after=[group]).bind(), total.bind())
            assert await chain.result(SOON) == 6

    run(main())


def test_on_end_and_on_success(app):
    double, _, _, fails, ends = functions(app)

    async def main():
        async with app:
            some = [double.bind(1), fails.bind()]
            group = await app.group(some, then=ends.bind(), on="END")
            assert sorted(await group.result(SOON)) == ["ACKED", "DEAD_LETTERED"]
            group = await app.group(some, then=ends.bind())
            with pytest.raises(errors.NotAcked, match="ended as DEAD_LETTERED"):
                await group.result(SOON)
            parent = await fails.schedule()
            child = await ends.options(after=parent, after_on="END").schedule()
            assert await child.result(SOON) == ["DEAD_LETTERED"]

    run(main())


def test_a_group_of_none_goes_at_once(app):
    _, total, *_ = functions(app)

    async def main():
        async with app:
            group = await app.group([], then=total.bind())
            assert await group.result(SOON) == 0
            assert (await group.progress()).members == 0

    run(main())


def test_a_group_with_an_id_is_made_once(app):
    double, total, *_ = functions(app)

    async def main():
        async with app:
            for _ in range(2):
                group = await app.group([double.bind(3)], then=total.bind(), id="mine")
                assert await group.result(SOON) == 6
            assert len(await app.find()) == 2
            with pytest.raises(errors.IdExists):
                await app.group([double.bind(4)] * 2, then=total.bind(), id="mine")

    run(main())


def test_a_function_makes_a_group(app):
    double, total, *_ = functions(app)

    @app.task
    async def fans_out(count: int) -> str:
        group: Group[int] = await app.group([double.bind(n) for n in range(count)], then=total.bind())
        return group.id

    async def main():
        async with app:
            id = await (await fans_out.schedule(5)).result(SOON)
            assert await app.handle(id).result(SOON) == 20

    run(main())


def test_a_tree_is_cancelled(app):
    double, total, *_ = functions(app)

    async def main():
        async with app:
            late = double.delay("1h")
            group = await app.group([late.bind(1), late.bind(2)], then=total.bind())
            assert (await group.cancel(tree=True)).status is Status.CANCELED
            assert await group.member(1).status() is Status.CANCELED
            chain = await app.chain(late.bind(1), total.bind(), total.bind())
            await chain.steps[0].cancel(tree=True)
            assert {await step.status() for step in chain.steps} == {Status.CANCELED}

    run(main())


def test_calls_that_cannot_be_grouped_are_refused(app):
    double, total, *_ = functions(app)

    async def main():
        async with app:
            for wrong in (
                app.chain,
                lambda: app.chain(double.options(key="k").bind(1)),
                lambda: app.group([double.options(id="i").bind(1)], then=total.bind()),
                lambda: app.group([double.options(key="k").bind(1)], then=total.bind()),
                lambda: app.group([double.bind(1)], then=total.options(after="x").bind()),
                lambda: app.group([double.bind(1)], then=total.bind(), on="MAYBE"),
            ):
                with pytest.raises(errors.InvalidField):
                    await wrong()
            assert await app.find() == []

    run(main())


def test_scheduled_calls_are_refused_with_the_right_spelling(app):
    double, total, *_ = functions(app)

    async def main():
        async with app:
            for wrong in (
                lambda: app.chain(double.schedule(1)),
                lambda: app.chain(double(1)),
                lambda: app.group([double.schedule(1)], then=total.bind()),
                lambda: app.group([double.bind(1)], then=total.schedule()),
                lambda: app.group([double], then=total.bind()),
            ):
                with pytest.raises(errors.InvalidField, match=r"takes bound calls; .*task\.bind"):
                    wrong()
            assert await app.find() == []

    run(main())


def test_a_tree_is_cancelled_from_a_step_that_has_ended(app):
    double, total, *_ = functions(app)

    async def main():
        async with app:
            chain = await app.chain(double.bind(1), total.delay("1h").bind(), total.bind())
            await chain.steps[0].result(SOON)
            assert (await chain.steps[0].cancel(tree=True)).status is Status.ACKED
            assert [await step.status() for step in chain.steps[1:]] == [Status.CANCELED] * 2
            with pytest.raises(errors.StateForbids):
                await chain.steps[0].cancel(tree=True)

    run(main())


def test_a_group_that_cannot_be_made_whole_leaves_nothing_behind(app):
    double, total, *_ = functions(app)

    async def main():
        async with app:
            wrong = double.options(after="nobody")
            with pytest.raises(errors.InvalidField, match="no such intent"):
                await app.group([double.delay("1h").bind(1), wrong.bind(1)], then=total.bind())
            assert {view.status for view in await app.find()} == {Status.CANCELED}

    run(main())


def test_parents_are_asked_for_inside_a_function(app):
    double, *_ = functions(app)

    @app.task
    async def mine() -> list[int]:
        return [parent.result for parent in await current().parents()]

    with app:
        chain = app.chain(double.bind(1), mine.bind()).wait()
        assert chain.result(SOON).wait() == [2]
        with pytest.raises(errors.Closed):
            app.parents()
    with pytest.raises(errors.Closed, match="Parents are not available"):
        Context("a", 1, 1, 1, 0, 0, {}, None).parents()
