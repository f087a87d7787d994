"""A trial ends in 30 days: charge the card then, even if this process crashes in between.

Run it twice: the second run finds the charge of the first run by its key and creates no other one.

    python examples/charge_in_30_days.py
"""

import asyncio

from duetime import App, Retry, Status, current

app = App("example-data")


@app.task(retry=Retry(max_attempts=8, initial_delay="1h", max_delay="1d"), timeout="1m")
async def charge(customer: str, cents: int) -> str:
    # Every attempt sends the same number to the bank.
    return f"charged {customer} {cents / 100:.2f}, request {current().intent_id}"


async def main() -> None:
    async with app:
        trial = charge.delay("30d").options(key="trial-of-ada", on_duplicate="return", tags={"plan": "pro"})
        handle = await trial.schedule("ada", 1900)
        if await handle.status() is Status.SCHEDULED:
            print("planned:", (await handle.why()).sentence)
            await handle.fire()  # she buys today: charge now
        print(await handle.result("10s"))


if __name__ == "__main__":
    asyncio.run(main())
