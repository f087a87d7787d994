"""The contract of logs. An engine's test subclasses `LogContract` and provides one fixture:

```python
class TestFileLog(LogContract):
    @pytest.fixture
    def open_log(self, tmp_path):
        return lambda: FileLog(tmp_path)
```

`open_log` returns a new, unopened handle on the same storage each time. Coroutines are run with
`asyncio.run`, so the contract needs no plugin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from duetime.errors import Damaged, Held, Moved
from duetime.limits import FRAME_BYTES_MAX
from duetime.log.frame import Frame
from duetime.log.log import Log, Position

OpenLog = Callable[[], Log]


def frame(body: bytes, nonce: int = 0, epoch: int = 1) -> Frame:
    """A frame of which only the body matters."""
    return Frame(epoch, nonce, 0, 1, 0, 0, body)


async def opened(open_log: OpenLog) -> Log:
    """A new handle, opened."""
    log = open_log()
    await log.open()
    return log


async def append_all(log: Log, bodies: list[bytes]) -> list[Position]:
    """Append one frame per body; returns their positions."""
    positions = []
    for body in bodies:
        positions.append(await log.tail())
        await log.append(positions[-1], frame(body))
    return positions


async def read_all(log: Log, start: Position | None = None) -> list[tuple[Position, Frame]]:
    """Every frame from `start`, or from the log's start."""
    return [found async for found in log.read(await log.start() if start is None else start)]


async def bodies_of(log: Log, start: Position | None = None) -> list[bytes]:
    """The bodies of these frames."""
    return [found.body for _, found in await read_all(log, start)]


# Neither sorted nor unique, and full of values that a careless codec gets wrong.
BODIES = [
    b"m",
    b"z" * 40,
    b"a",
    b"",
    b"\x00" * 1100,
    b"m",
    b"\xd0\xe7\x01\x00",
    b"\xff",
    bytes(range(256)),
    b"b",
]


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run one test's coroutine."""
    asyncio.run(work)


class LogContract:
    """The points of the `Log` protocol, one test each."""

    @pytest.fixture
    def open_log(self) -> OpenLog:
        raise NotImplementedError("give a callable that makes a handle on one and the same storage")

    def test_an_empty_log_starts_at_its_tail_and_has_nothing_to_read(self, open_log: OpenLog) -> None:
        async def work() -> None:
            log = await opened(open_log)
            assert await log.start() == await log.tail()
            assert await read_all(log) == []
            assert await log.sync() == await log.tail()
            await log.close()

        run(work())

    def test_frames_come_back_in_order_with_their_positions(self, open_log: OpenLog) -> None:
        async def work() -> None:
            log = await opened(open_log)
            positions = await append_all(log, BODIES)
            assert positions == sorted(set(positions))
            assert await read_all(log) == [(p, frame(b)) for p, b in zip(positions, BODIES, strict=True)]
            await log.close()

        run(work())

    def test_append_returns_the_position_of_the_next_frame(self, open_log: OpenLog) -> None:
        async def work() -> None:
            log = await opened(open_log)
            at = await log.tail()
            for body in BODIES:
                after = await log.append(at, frame(body))
                assert after == await log.tail() > at
                at = after
            await log.close()

        run(work())

    def test_reading_from_each_frame_gives_it_and_all_behind(self, open_log: OpenLog) -> None:
        async def work() -> None:
            log = await opened(open_log)
            positions = await append_all(log, BODIES)
            for index, position in enumerate(positions):
                assert await bodies_of(log, position) == BODIES[index:]
            assert await bodies_of(log, await log.tail()) == []
            await log.close()

        run(work())

    def test_reading_past_the_tail_or_between_frames_is_refused(self, open_log: OpenLog) -> None:
        async def work() -> None:
            log = await opened(open_log)
            positions = await append_all(log, BODIES)
            tail = await log.tail()
            places = {tail + 1, tail + 1_000_000, positions[0] - 1} | {p + 1 for p in positions}
            for place in sorted(places - {*positions, tail}):
                with pytest.raises(Damaged):
                    await read_all(log, place)
            await log.close()

        run(work())

    def test_a_read_ends_at_the_tail_it_began_with_while_appends_go_on(self, open_log: OpenLog) -> None:
        async def work() -> None:
            log = await opened(open_log)
            await append_all(log, BODIES)
            reading = log.read(await log.start())
            seen = []
            late = [b"late" * 50] * 10
            await append_all(log, late)
            async for _, found in reading:
                seen.append(found.body)
                await append_all(log, [b"later"])
            assert seen == BODIES
            assert await bodies_of(log) == [*BODIES, *late, *[b"later"] * len(BODIES)]
            await log.close()

        run(work())

    def test_opening_again_shows_what_was_appended(self, open_log: OpenLog) -> None:
        async def work() -> None:
            for index, body in enumerate(BODIES):
                log = await opened(open_log)
                assert await bodies_of(log) == BODIES[:index]
                await append_all(log, [body])
                tail = await log.tail()
                await log.close()
                log = await opened(open_log)
                assert await log.tail() == tail
                await log.close()

        run(work())

    def test_an_append_elsewhere_than_the_tail_is_refused_and_changes_nothing(
        self, open_log: OpenLog
    ) -> None:
        async def work() -> None:
            log = await opened(open_log)
            positions = await append_all(log, BODIES)
            tail, before = await log.tail(), await read_all(log)
            for place in [*positions, positions[0] - 1, tail - 1, tail + 1]:
                with pytest.raises(Moved):
                    await log.append(place, frame(b"intruder"))
            assert await log.tail() == tail
            assert await read_all(log) == before
            await append_all(log, [b"next"])
            assert await bodies_of(log) == [*BODIES, b"next"]
            await log.close()

        run(work())

    def test_of_two_writers_one_wins(self, open_log: OpenLog) -> None:
        async def work() -> None:
            one = await opened(open_log)
            await append_all(one, [b"before"])
            two = open_log()
            try:
                await two.open()
            except Held:
                # Kept out until the first handle is closed.
                await append_all(one, [b"one"])
                await one.close()
                await two.open()
                assert await bodies_of(two) == [b"before", b"one"]
                await two.close()
                return
            at = await one.tail()
            assert await two.tail() == at
            await two.append(at, frame(b"two", epoch=2))
            with pytest.raises(Moved):
                await one.append(at, frame(b"one", epoch=1))
            assert await bodies_of(two) == [b"before", b"two"]
            await one.close()
            await two.close()

        run(work())

    @pytest.mark.parametrize("size", [0, 1, 511, 512, 513, FRAME_BYTES_MAX - 1, FRAME_BYTES_MAX])
    @pytest.mark.parametrize("byte", [b"\0", b"x"])
    def test_a_body_of_any_size_comes_back(self, open_log: OpenLog, size: int, byte: bytes) -> None:
        async def work() -> None:
            log = await opened(open_log)
            bodies = [b"before", byte * size, b"after", byte * size]
            await append_all(log, bodies)
            assert await bodies_of(log) == bodies
            await log.close()
            log = await opened(open_log)
            assert await bodies_of(log) == bodies
            await log.close()

        run(work())

    def test_a_body_over_the_limit_is_refused_and_changes_nothing(self, open_log: OpenLog) -> None:
        async def work() -> None:
            log = await opened(open_log)
            await append_all(log, [b"before"])
            with pytest.raises(AssertionError):
                await log.append(await log.tail(), frame(b"x" * (FRAME_BYTES_MAX + 1)))
            await append_all(log, [b"after"])
            assert await bodies_of(log) == [b"before", b"after"]
            await log.close()

        run(work())

    def test_headers_come_back_at_their_extremes(self, open_log: OpenLog) -> None:
        async def work() -> None:
            most = Frame(2**63 - 1, 2**64 - 1, 2**63 - 1, 2**32 - 1, 10**13, 255, b"most")
            least = Frame(0, 0, 0, 0, 0, 0, b"least")
            log = await opened(open_log)
            for each in (most, least, most):
                await log.append(await log.tail(), each)
            assert [found for _, found in await read_all(log)] == [most, least, most]
            await log.close()
            log = await opened(open_log)
            assert [found for _, found in await read_all(log)] == [most, least, most]
            await log.close()

        run(work())

    def test_sync_covers_everything_appended_before_it(self, open_log: OpenLog) -> None:
        async def work() -> None:
            log = await opened(open_log)
            for body in BODIES:
                tail = await log.append(await log.tail(), frame(body))
                assert await log.sync() >= tail
                assert await log.sync() >= tail
            await log.close()

        run(work())

    def test_trim_forgets_nothing_it_was_not_told_to(self, open_log: OpenLog) -> None:
        async def work() -> None:
            log = await opened(open_log)
            bodies = [bytes([65 + n % 26]) * (n * 37 % 300) for n in range(60)]
            positions = await append_all(log, bodies)
            tail = await log.tail()
            for index in range(0, len(positions), 7):
                await log.trim(positions[index])
                assert await log.start() <= positions[index]
                assert await bodies_of(log, positions[index]) == bodies[index:]
                kept = len(await read_all(log))
                assert await bodies_of(log) == bodies[-kept:]
                assert await log.tail() == tail
            await log.close()

        run(work())

    def test_what_was_trimmed_cannot_be_read(self, open_log: OpenLog) -> None:
        async def work() -> None:
            log = await opened(open_log)
            positions = await append_all(log, [b"x" * 200] * 40)
            await log.trim(await log.tail())
            start = await log.start()
            for position in [p for p in positions if p < start]:
                with pytest.raises(Damaged):
                    await read_all(log, position)
            await log.close()

        run(work())

    def test_trimming_below_everything_or_above_the_tail_keeps_the_tail(self, open_log: OpenLog) -> None:
        async def work() -> None:
            log = await opened(open_log)
            await append_all(log, BODIES)
            tail = await log.tail()
            await log.trim(0)
            assert await bodies_of(log) == BODIES
            await log.trim(tail + 1_000_000)
            assert await log.tail() == tail
            await log.append(tail, frame(b"next"))
            assert (await bodies_of(log))[-1] == b"next"
            await log.close()
            log = await opened(open_log)
            assert (await bodies_of(log))[-1] == b"next"
            await log.close()

        run(work())

    def test_closing_twice_is_fine(self, open_log: OpenLog) -> None:
        async def work() -> None:
            log = await opened(open_log)
            await append_all(log, [b"x"])
            await log.close()
            await log.close()
            log = await opened(open_log)
            assert await bodies_of(log) == [b"x"]
            await log.close()

        run(work())
