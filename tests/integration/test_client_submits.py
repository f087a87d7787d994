"""Many callers of one app on a server's address: they go together, and each hears of its own intent."""

from __future__ import annotations

import asyncio

import pytest

from duetime import App, errors
from duetime.client.remote.submitter import parts
from duetime.limits import SUBMIT_ITEMS_MAX
from tests.http.server import ServerProcess
from tests.integration.asynchronous import asynchronous

CALLERS = 300
# One who was alone, four requests of those who came later, and the greeting of the app.
CONNECTIONS_MAX = 6


def made(url: str, queue: str) -> tuple:
    app = App(url)

    @app.task(name="later", queue=queue, tier="FAST")
    def later(number: int) -> None: ...

    return app, later.delay("1h")


async def numbers(app: App, queue: str) -> list[int]:
    """The arguments of all that is on the server."""
    return sorted(view.payload[0][0] for view in await app.find(queue=queue, limit=1_000))


@asynchronous
async def test_many_callers_go_together(proxy, fresh):
    queue = fresh()
    app, later = made(proxy.url, queue)
    async with app:
        handles = await asyncio.gather(*(later.schedule(number) for number in range(CALLERS)))
        assert len({handle.id for handle in handles}) == CALLERS
        assert await numbers(app, queue) == list(range(CALLERS))
        assert proxy.connections <= CONNECTIONS_MAX, "and not one for each of them"
        views = await asyncio.gather(*(handles[place].view() for place in (0, 1, CALLERS - 1)))
        assert [view.payload[0][0] for view in views] == [0, 1, CALLERS - 1], "each its own"


@asynchronous
async def test_a_refused_submit_does_not_affect_the_others_of_its_batch(server, fresh):
    queue, taken = fresh(), fresh()
    app, later = made(server.url, queue)
    async with app:
        await later.options(id=taken).schedule(-1)
        calls = [later.schedule(number) for number in range(20)]
        calls.insert(10, later.options(id=taken).schedule(99))
        replies = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(replies.pop(10), errors.IdExists)
        assert not [reply for reply in replies if isinstance(reply, BaseException)]
        assert await numbers(app, queue) == [-1, *range(20)]


@asynchronous
async def test_a_lost_answer_makes_nothing_twice(proxy, fresh):
    queue = fresh()
    app, later = made(proxy.url, queue)
    async with app:
        proxy.lose_answers(3)
        handles = await asyncio.gather(*(later.schedule(number) for number in range(CALLERS)))
        assert proxy.to_lose == 0
        assert len({handle.id for handle in handles}) == CALLERS
        assert await numbers(app, queue) == list(range(CALLERS))


@asynchronous
async def test_every_caller_gets_the_error_when_the_server_does_not_answer(proxy, fresh):
    app, later = made(proxy.url, fresh())
    async with app:
        proxy.refuse(1_000)
        proxy.cut()
        replies = await asyncio.gather(*(later.schedule(n) for n in range(20)), return_exceptions=True)
        assert {type(reply) for reply in replies} == {errors.Unreachable}


@asynchronous
async def test_a_submit_cancelled_before_it_was_sent_sends_nothing(server, fresh):
    queue = fresh()
    app, later = made(server.url, queue)
    async with app:

        async def ask(number: int) -> None:
            await later.schedule(number)

        tasks = [asyncio.create_task(ask(number)) for number in range(20)]

        def give_up() -> None:  # when they have asked, and before the loop has been round again
            for task in tasks[10:]:
                task.cancel()

        asyncio.get_running_loop().call_soon(give_up)
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(each) for each in ended] == [type(None)] * 10 + [asyncio.CancelledError] * 10
        await later.schedule(50)
        assert await numbers(app, queue) == [*range(10), 50]


def test_a_full_lane_takes_as_many_as_it_may(tmp_path, fresh):
    @asynchronous
    async def fill(url: str) -> None:
        queue = fresh()
        app, later = made(url, queue)
        async with app:
            replies = await asyncio.gather(*(later.schedule(n) for n in range(12)), return_exceptions=True)
            refused = [reply for reply in replies if isinstance(reply, BaseException)]
            assert len(refused) == 2 and {type(each) for each in refused} == {errors.LaneFull}
            assert len(await numbers(app, queue)) == 10

    with ServerProcess(tmp_path / "data", limits__lane_pending_max=10) as server:
        fill(server.url)


def test_requests_are_cut_where_they_are_large_enough():
    def lengths(sizes: list[int]) -> list[int]:
        return [len(part) for part in parts(sizes, int)]

    assert lengths([]) == []
    assert lengths([1] * (SUBMIT_ITEMS_MAX + 1)) == [SUBMIT_ITEMS_MAX, 1]
    assert lengths([1 << 20, 1 << 20, 1]) == [2, 1]
    assert lengths([1 << 23, 1]) == [1, 1], "what is too large goes alone, and is refused alone"


@pytest.mark.parametrize("count", [0, 1])
@asynchronous
async def test_few_are_many_too(server, fresh, count):
    queue = fresh()
    app, later = made(server.url, queue)
    async with app:
        assert len(await later.schedule_many([(number,) for number in range(count)])) == count
        assert await numbers(app, queue) == list(range(count))
