"""Tests a month in a few milliseconds: the real engine on virtual time.

pytest examples/test_thirty_days.py
"""

from collections.abc import Callable

from duetime import App, Retry, Status
from duetime.testing.plugin import PlainClock


def test_a_dunning_letter_is_sent_after_30_days_unless_it_is_paid(app: App, clock: PlainClock) -> None:
    sent: list[str] = []

    @app.task
    def dun(invoice: str) -> None:
        sent.append(invoice)

    unpaid = dun.delay("30d").schedule("invoice-1").wait()
    paid = dun.delay("30d").schedule("invoice-2").wait()

    clock.advance("29d")
    assert sent == []
    paid.cancel().wait()

    clock.advance("1d")
    assert sent == ["invoice-1"]
    assert unpaid.status().wait() is Status.ACKED
    assert paid.status().wait() is Status.CANCELED


def test_a_job_gives_up_after_a_week_of_trying(
    app: App, clock: PlainClock, drain: Callable[[], None]
) -> None:
    attempts: list[int] = []

    @app.task(retry=Retry(max_attempts=8, backoff="fixed", initial_delay="1d", max_delay="1d", jitter=False))
    def fetch() -> None:
        attempts.append(clock.now_ms())
        raise ConnectionError("nobody there")

    handle = fetch.schedule().wait()
    drain()
    assert len(attempts) == 1
    clock.advance("3d")
    assert len(attempts) == 4
    clock.advance("10d")
    assert len(attempts) == 8
    assert handle.status().wait() is Status.DEAD_LETTERED
