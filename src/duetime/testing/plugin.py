"""The pytest plugin: an app on virtual time for synchronous tests.

`app` is a started app in memory; a test (or a conftest) may provide its own by overriding the fixture
`duetime_app`. `clock.advance("30d")` lets time pass, `drain()` waits for what is due now. The types of the
fixtures are `App`, `PlainClock` and `Drain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from duetime.client.app.app import App
    from duetime.client.app.times import Delay, Moment
    from duetime.testing.time import ManualClock, VirtualTime

Drain = Callable[[], None]
"""The type of the fixture `drain`."""


class PlainClock:
    """Virtual time for synchronous tests: each call returns when everything due has happened."""

    def __init__(self, time: VirtualTime) -> None:
        self._time = time

    def now_ms(self) -> int:
        """The virtual time, in milliseconds since 1970."""
        return self._time.now_ms()

    def advance(self, delay: Delay) -> None:
        """Let this much time pass: `"30d"`, a timedelta, or seconds."""
        self._time.advance(delay).wait()

    def advance_to(self, moment: Moment) -> None:
        """Let time pass until this moment."""
        self._time.advance_to(moment).wait()

    def drain(self) -> None:
        """Wait until nothing runs and nothing more is due now."""
        self._time.drain().wait()


@pytest.fixture
def duetime_app() -> App:
    """The app under test; override this fixture to return your own."""
    from duetime.client.app.app import App

    return App(":memory:")


@pytest.fixture
def _manual_clock() -> ManualClock:
    from duetime.testing.time import ManualClock

    return ManualClock()


@pytest.fixture
def app(_virtual_app: App) -> App:
    """The app under test, in memory and on virtual time, started."""
    return _virtual_app


@pytest.fixture
def _virtual_app(duetime_app: App, _manual_clock: ManualClock) -> Iterator[App]:
    duetime_app.rewire(":memory:", clock=_manual_clock)
    with duetime_app:
        yield duetime_app


@pytest.fixture
def clock(_virtual_app: App, _manual_clock: ManualClock) -> PlainClock:
    """The app's clock."""
    from duetime.testing.time import VirtualTime

    return PlainClock(VirtualTime(_virtual_app, _manual_clock))


@pytest.fixture
def drain(clock: PlainClock) -> Drain:
    """Wait until nothing runs and nothing more is due now."""
    return clock.drain
