"""Notifies another server: with back-off, with the delay that the server asks for, and with a final refusal.

python examples/webhook_with_backoff.py
"""

import asyncio

from duetime import App, Reject, Retry, RetryAfter, current
from duetime.errors import NotAcked

app = App(":memory:")
ANSWERS = {"shop": [503, 429, 200], "closed": [410]}


def post(url: str) -> int:
    """Stands for a real request."""
    answers = ANSWERS[url]
    return answers.pop(0) if len(answers) > 1 else answers[0]


@app.task(queue="webhooks", timeout="10s", retry=Retry(max_attempts=5, initial_delay="50ms", max_delay="1s"))
def notify(url: str, event: str) -> int:  # a plain function: it may block its thread
    status = post(url)
    print(f"attempt {current().attempt}: {url} answers {status}")
    if status == 429:
        raise RetryAfter("100ms", "the server asks to wait")
    if status == 410:
        raise Reject("the server is gone for good")
    if status >= 500:
        raise ConnectionError(f"status {status}")
    return status


async def main() -> None:
    async with app:
        shop = await notify.schedule("shop", "paid")
        print("told:", await shop.result("10s"))

        closed = await notify.schedule("closed", "paid")
        try:
            await closed.result("10s")
        except NotAcked as error:
            print("given up:", error.message)
        dead = await app.find(status="dead_lettered")
        print("dead letters:", [intent.intent_id == closed.id for intent in dead])


if __name__ == "__main__":
    asyncio.run(main())
