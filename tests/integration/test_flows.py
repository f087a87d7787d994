"""Flows with an App: results go from step to step; groups in chains, chains in groups, failures, delays."""

from __future__ import annotations

import asyncio

import pytest

from duetime import App, Failure, Group, Middleware, Parent, Reject, Retry, Status, errors
from duetime.testing.time import ManualClock, VirtualTime
from tests.integration.rig import SOON

ONCE = Retry(max_attempts=1)


@pytest.fixture
def app(tmp_path):
    return App(str(tmp_path / "data"))


class Functions:
    def __init__(self, app: App) -> None:
        @app.task
        async def double(number: int) -> int:
            return 2 * number

        @app.task
        def add(first: int, second: int) -> int:
            return first + second

        @app.task
        async def total(numbers: list[int], more: int = 0) -> int:
            return sum(numbers) + more

        @app.task
        async def text(number: int, *, suffix: str = "") -> str:
            return f"{number}{suffix}"

        @app.task(retry=ONCE)
        async def fails(number: int) -> int:
            raise Reject(f"no {number}")

        @app.task
        async def report(failure: Failure) -> str:
            assert type(failure) is Failure
            return f"{failure.status}: {failure.message}"

        @app.task
        async def alone() -> str:
            return "alone"

        self.double, self.add, self.total, self.text = double, add, total, text
        self.fails, self.report, self.alone = fails, report, alone


@pytest.fixture
def f(app):
    return Functions(app)


def run(app, main):
    async def started():
        async with app:
            await main()

    asyncio.run(started())


def test_each_step_gets_the_result_of_the_one_before(app, f):
    async def main():
        chain = await app.chain(f.double.bind(1) | f.add.bind(3) | f.text.bind(suffix="!"))
        assert await chain.result(SOON) == "5!"
        assert [await step.result(SOON) for step in chain.steps] == [2, 5, "5!"]
        same = await app.chain(f.double.bind(1), f.add.bind(3), f.text.bind(suffix="!"))
        assert await same.result(SOON) == "5!"
        again = await (f.double.bind(1) | f.add.bind(second=4)).schedule()
        assert await again.result(SOON) == 6

    run(app, main)


def test_a_step_with_all_its_arguments_gets_nothing(app, f):
    async def main():
        chain = await app.chain(f.double.bind(1) | f.double.bind(5) | f.alone.bind() | f.alone.bind())
        assert [await step.result(SOON) for step in chain.steps] == [2, 10, "alone", "alone"]

    run(app, main)


def test_a_group_in_a_chain(app, f):
    async def main():
        chain = await app.chain(
            f.double.bind(1) | [f.double.bind(), f.add.bind(5), f.double.bind(10)] | f.total.bind(more=100)
        )
        assert await chain.result(SOON) == 4 + 7 + 20 + 100
        group = chain.steps[1]
        assert isinstance(group, Group) and group.size == 3 and len(chain.steps) == 2
        assert await group.member(1).result(SOON) == 7
        more = await app.chain([f.double.bind(1), f.double.bind(2)] | f.total.bind() | f.double.bind())
        assert await more.result(SOON) == 12
        empty = await app.chain(f.double.bind(1), [], f.total.bind(more=7))
        assert await empty.result(SOON) == 7

    run(app, main)


def test_a_chain_in_a_group(app, f):
    async def main():
        members = [f.double.bind(1) | f.double.bind() | f.add.bind(1), f.double.bind(4)]
        group = await app.group(members, then=f.total.bind())
        assert await group.result(SOON) == 5 + 8
        assert await group.member(0).result(SOON) == 5

    run(app, main)


def test_groups_and_chains_to_any_depth(app, f):
    async def main():
        inner = [f.double.bind(), f.double.bind() | f.add.bind(1)] | f.total.bind()
        flow = (
            f.double.bind(1)
            | [inner, inner | f.double.bind(), f.add.bind(10)]
            | f.total.bind()
            | f.text.bind()
        )
        # double: 2. inner: [4, 5] -> 9. members: 9, 18, 12.
        assert await (await app.chain(flow)).result(SOON) == "39"

    run(app, main)


def test_a_branch_for_failures_runs_if_a_step_fails(app, f):
    async def main():
        flow = f.double.bind(1) | f.fails.bind() | f.double.bind()
        chain = await app.chain(flow, on_failure=f.report.bind())
        assert chain.failure is not None
        assert await chain.failure.result(SOON) == "DEAD_LETTERED: no 2"
        assert await chain.status() is Status.DEAD_LETTERED
        found = await chain.failure.parents()
        assert [parent.intent_id for parent in found] == [step.id for step in chain.steps]

    run(app, main)


def test_a_branch_for_failures_is_cancelled_if_all_succeed(app, f):
    async def main():
        branch = f.report.bind() | f.alone.bind()
        chain = await app.chain(f.double.bind(1) | f.double.bind(), on_failure=branch)
        assert await chain.result(SOON) == 4
        assert chain.failure is not None
        with pytest.raises(errors.NotAcked, match="CANCELED"):
            await chain.failure.result(SOON)
        why = await chain.failure.why()
        assert why.code == "not-needed" and "was not needed" in why.sentence

    run(app, main)


def test_a_member_and_a_group_have_branches_of_their_own(app, f):
    seen: list[str] = []

    @app.task
    async def note(failure: Failure, where: str) -> None:
        seen.append(f"{where} {failure.kind}")

    @app.task
    async def count(results: list[int | None]) -> int:
        return len(results)

    async def main():
        member = (f.double.bind(1) | f.fails.bind()).on_failure(note.bind("member"))
        group = await app.group(
            [member, f.double.bind(1)], then=count.bind(), on="END", on_failure=note.bind("all")
        )
        assert await group.result(SOON) == 2
        await app.backend.quiet()
        assert seen == ["member rejected"]
        group = await app.group([f.fails.bind(1)], then=count.bind(), on_failure=note.bind("all"))
        await app.backend.quiet()
        assert seen[1:] == ["all dependency"]

    run(app, main)


def test_a_group_with_chains_can_be_repeated(app, f):
    async def main():
        for _ in range(2):
            members = [f.double.bind(1) | f.double.bind(), f.double.bind(3)]
            group = await app.group(members, then=f.total.bind(), id="mine", on_failure=f.report.bind())
            assert await group.result(SOON) == 10
        assert sorted(intent.intent_id for intent in await app.find()) == [
            "mine", "mine-failure", "mine.0", "mine.0-0", "mine.1",
        ]  # fmt: skip

    run(app, main)


def test_middleware_sees_the_arguments_of_every_step(app, f):
    calls = []

    class Seen(Middleware):
        def before_schedule(self, call):
            calls.append((call.task.rpartition(".")[2], list(call.args), dict(call.kwargs)))
            if call.task.endswith("add"):
                call.args = [30]

    app.add_middleware(Seen())

    async def main():
        chain = await app.chain(f.double.bind(1) | f.add.bind(3) | f.text.bind(suffix="!"))
        assert await chain.result(SOON) == "32!"
        assert calls == [("double", [1], {}), ("add", [3], {}), ("text", [], {"suffix": "!"})]

    run(app, main)


def test_a_delay_counts_from_the_end_of_the_step_before():
    clock = ManualClock()
    app = App(":memory:", clock=clock)
    f = Functions(app)

    async def main():
        time = VirtualTime(app, clock)
        chain = await app.chain(
            f.double.delay("1h").bind(1)
            | f.double.delay("2h").bind()
            | f.text.options(after_delay="3h").bind()
        )
        assert (await chain.steps[0].view()).execute_at.hour == 1
        await time.advance("90m")
        assert await chain.steps[0].result() == 2
        assert (await chain.steps[1].view()).execute_at.hour == 3
        assert "after the end of what it waited for" in (await chain.steps[1].why()).sentence
        await time.advance("90m")
        assert await chain.steps[1].result() == 4 and await chain.status() is Status.SCHEDULED
        await time.advance("3h")
        assert await chain.result() == "4"
        group = await app.group([f.double.bind(1)], then=f.total.delay("1d").bind())
        await time.drain()
        assert await group.status() is Status.SCHEDULED
        await time.advance("1d")
        assert await group.result() == 2

    run(app, main)


def test_mistakes_are_found_when_the_chain_is_built(app, f):
    with pytest.raises(errors.InvalidField, match=r"text.* cannot take the result of .*report, str,"):
        f.report.bind(None) | f.text.bind()
    with pytest.raises(errors.InvalidField, match=r"total.* cannot take the result of .*double, int"):
        f.double.bind(1) | f.total.bind()
    with pytest.raises(errors.InvalidField, match=r"total.* cannot take a list of what .*alone returns"):
        [f.alone.bind()] | f.total.bind()
    with pytest.raises(errors.InvalidField, match="cannot be called with these arguments"):
        f.add.bind()
    with pytest.raises(errors.InvalidField, match="ends with a group"):
        app.chain(f.double.bind(1), [f.double.bind()])
    with pytest.raises(errors.InvalidField, match="A group follows a group"):
        app.chain([f.double.bind(1)], [f.double.bind(1)], f.total.bind())
    with pytest.raises(errors.InvalidField, match="A step follows on_failure"):
        f.double.bind(1).on_failure(f.report.bind()) | f.double.bind()
    with pytest.raises(errors.InvalidField, match="has an on_failure already"):
        app.chain(f.double.bind(1).on_failure(f.report.bind()), on_failure=f.report.bind())
    with pytest.raises(errors.InvalidField, match="takes bound calls; int is not one"):
        f.double.bind(1) | 5
    with pytest.raises(errors.InvalidField, match="10000 are allowed"):
        f.double.bind(1) | [f.double.bind()] * 10_001

    async def main():
        with pytest.raises(errors.InvalidField, match="lacks its first argument"):
            await app.chain(f.double.bind())
        with pytest.raises(errors.InvalidField, match="lacks its first argument"):
            await app.group([f.double.bind()], then=f.total.bind())
        assert await app.find() == []

    run(app, main)


def test_parents_can_still_be_read(app, f):
    @app.task
    async def both(number: int) -> tuple[int, object]:
        (parent,) = await app.parents()
        assert isinstance(parent, Parent)
        return number, parent.result

    async def main():
        chain = await app.chain(f.double.bind(2) | both.bind())
        assert await chain.result(SOON) == (4, 4)

    run(app, main)


def test_a_refused_chain_leaves_no_step_behind(app):
    functions = Functions(app)
    later = functions.double.delay("1h")

    async def main():
        async with app:
            await app.chain(later.options(id="c1").bind(1) | functions.double.options(id="c2").bind())
            for first, second in (("n1", "c2"), ("c1", "n2")):
                with pytest.raises(errors.IdExists):
                    await app.chain(
                        later.options(id=first).bind(1) | functions.double.options(id=second).bind()
                    )
            assert await app.handle("n1").status() is Status.CANCELED
            assert await app.handle("n2").status() is Status.CANCELED
            assert await app.handle("c1").status() is Status.SCHEDULED, "the other chain goes on"
            assert await app.handle("c2").status() is Status.BLOCKED

    asyncio.run(main())


def test_a_chain_is_cancelled_as_a_whole(app):
    functions = Functions(app)

    async def main():
        async with app:
            chain = await app.chain(functions.double.delay("1h").bind(1) | functions.double.bind())
            await chain.cancel(tree=True)
            assert [await step.status() for step in chain.steps] == [Status.CANCELED] * 2
            other = await app.chain(functions.double.delay("1h").bind(1) | functions.double.bind())
            await other.cancel()
            assert [await step.status() for step in other.steps] == [Status.SCHEDULED, Status.CANCELED]

    asyncio.run(main())
