"""An entity: all messages of one account run one at a time, in the order they were accepted.

python examples/account_entity.py
"""

import asyncio

from duetime import App

app = App(":memory:")
balances: dict[str, int] = {}


class Account:
    """Created with its id for each message. Store its state in your own database."""

    def __init__(self, id: str) -> None:
        self.id = id

    async def deposit(self, cents: int) -> int:
        balance = balances.get(self.id, 0)
        await asyncio.sleep(0.001)  # other functions run, but no other message of this account
        balances[self.id] = balance + cents
        return balances[self.id]

    async def close(self) -> str:
        return f"{self.id} closed with {balances.pop(self.id, 0)}"


accounts = app.entity(Account)


async def main() -> None:
    async with app:
        for cents in range(1, 101):
            await accounts("ada").tell("deposit", cents)
            await accounts("bob").tell("deposit", 1)
        last = [await accounts(name).tell("close") for name in ("ada", "bob")]
        print([await handle.result("10s") for handle in last])


if __name__ == "__main__":
    asyncio.run(main())
