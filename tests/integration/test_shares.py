"""Fair shares in the program's own engine, over a real folder."""

from __future__ import annotations

import asyncio

from duetime import App
from duetime.limits import TIER_PERMITS
from duetime.protocol.command import Pause, Resume
from duetime.protocol.terms import Tier


def test_a_tenant_that_floods_does_not_delay_another(tmp_path):
    """A sends 5,000, then B ten. Before the n-th of B, A starts n + 1 times at most; what starts at one time,
    as many as there are permits, may tell of it in another order."""
    app = App(str(tmp_path / "data"))
    order: list[str] = []

    @app.task(ack="ASYNC")
    async def work(tenant: str) -> None:
        order.append(tenant)

    async def main() -> None:
        async with app:
            await app.ask(Pause("task:default"))
            await work.options(fairness_key="a").schedule_many([("a",)] * 5_000)
            few = await work.options(fairness_key="b").schedule_many([("b",)] * 10)
            await app.ask(Resume("task:default"))
            for handle in few:
                await handle.result(30)

    asyncio.run(main())
    places = [place for place, tenant in enumerate(order) if tenant == "b"]
    assert len(places) == 10
    for nth, place in enumerate(places, start=1):
        assert place - (nth - 1) <= (nth + 1) + TIER_PERMITS[Tier.STANDARD], f"the {nth}. after {place}"


def test_the_share_is_shown_on_the_intent(tmp_path):
    app = App(str(tmp_path / "data"))

    @app.task
    async def work() -> None: ...

    async def main() -> None:
        async with app:
            handle = await work.options(fairness_key="a", fairness_weight=3, delay=3_600).schedule()
            intent = await handle.view()
            assert (intent.fairness_key, intent.fairness_weight) == ("a", 3)

    asyncio.run(main())
