"""What one who floods may cost the others, in virtual time: shares, priorities, limits, and a far date."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable

import pytest

from duetime.kernel import invariants
from duetime.limits import DAY_MS
from duetime.protocol.command import Resize, Settle
from duetime.protocol.outcome import Done, Settlement
from duetime.protocol.terms import Limit, Terms
from tests.unit.kernel.bench import T0, Bench, delivered, deliveries, queue, stream

LANE = "stream:s"
HIGH, LOW = 300, -300


# Priority: seconds of head start, so waiting always wins.


class Pulled:
    """One worker that takes one at a time."""

    def __init__(self) -> None:
        self.bench = Bench()

    def terms(self, priority: int = 0) -> Terms:
        return stream(priority=priority)

    def take(self) -> list[str]:
        (started,) = delivered(self.bench.demand("w", LANE, 1, standing=False)) or ("",)
        if started:
            self.bench.done(started)
        return [started] if started else []


class Pushed:
    """One permit, given back as soon as it is taken."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.bench.do(Resize(3, 1))
        self.bench.do(Resize(4, 1))
        (self._running,) = delivered(self.bench.submit("first", on=queue("q")))

    def terms(self, priority: int = 0) -> Terms:
        return queue("q", priority=priority)

    def take(self) -> list[str]:
        if not self._running:
            return []
        started = delivered(self.bench.done(self._running))
        self._running = started[0] if started else ""
        return started


@pytest.mark.parametrize("path", [Pulled, Pushed])
def test_a_flood_of_high_cannot_starve_low(path):
    """Two HIGH become due for each that is taken. LOW goes before every HIGH that is due more than 600 s
    after it: the bound is the difference of the head starts."""
    side = path()
    bench, high, low = side.bench, side.terms(priority=HIGH), side.terms(priority=LOW)
    bench.submit("low", on=low)
    order: list[str] = []
    for second in range(1_300):
        bench.ms = 1_000 * second
        bench.submit(f"high-{second}-a", f"high-{second}-b", on=high)
        order += side.take()
    place = order.index("low")
    before = {id for id in order[:place] if id.startswith("high")}
    assert before == {f"high-{second}-{name}" for second in range(600) for name in "ab"}
    assert order[:place] == sorted(order[:place], key=lambda id: (int(id.split("-")[1]), id)), "FIFO"


@pytest.mark.parametrize("path", [Pulled, Pushed])
def test_equals_go_in_the_order_in_which_they_came(path):
    side = path()
    ids = [f"i{n}" for n in range(200)]
    for first in range(0, 200, 20):
        side.bench.submit(*ids[first : first + 20], on=side.terms())
    order = [id for _ in ids for id in side.take()]
    assert order == ids


# Limits by key, with workers that pull.


class Workers:
    """Some consumers that hold each delivery for a while, then give it back and ask for another."""

    def __init__(self, bench: Bench, count: int, credits: int, hold_ms: int) -> None:
        self.bench = bench
        self.hold_ms = hold_ms
        self.starts: list[tuple[int, str]] = []
        """(when, id)"""
        self._held: list[tuple[int, str, int, str]] = []
        self.names = [f"w{n}" for n in range(count)]
        for name in self.names:
            self._see(bench.demand(name, LANE, credits))

    def _see(self, applied: object) -> None:
        for each in deliveries(applied):  # type: ignore[arg-type]
            self.starts.append((self.bench.ms, each.id))
            ends_ms = self.bench.ms + self.hold_ms
            heapq.heappush(self._held, (ends_ms, each.id, each.delivery, each.consumer))

    def run(self, until_ms: int) -> None:
        """Time goes on: whatever ends, ends, and whatever may go, goes."""
        bench = self.bench
        while True:
            found = [ms for ms in (bench.next(), self._held[0][0] if self._held else None) if ms is not None]
            now = min(found, default=until_ms)
            if now >= until_ms:
                break
            bench.ms = max(now, bench.ms)
            ended: list[tuple[int, str, int, str]] = []
            while self._held and self._held[0][0] <= bench.ms:
                ended.append(heapq.heappop(self._held))
            if ended:
                done = tuple(Settlement(id, number, Done(), consumer=who) for _, id, number, who in ended)
                self._see(bench.do(Settle(done)))
                for name, credits in Counter(consumer for *_, consumer in ended).items():
                    self._see(bench.demand(name, LANE, credits))
            else:
                self._see(bench.at(bench.ms))


def most_in_a_window(times_ms: Iterable[int], rate: int, burst: int) -> None:
    """In no window are there more than its length allows, and a burst: a bucket of tokens never runs dry."""
    tokens, last_ms = 1_000 * burst, 0
    for at_ms in times_ms:
        tokens = min(1_000 * burst, tokens + rate * (at_ms - last_ms))
        last_ms = at_ms
        assert tokens >= 1_000, f"one too many at {at_ms} ms"
        tokens -= 1_000


def test_a_rate_by_key_over_50_keys_and_4_workers_is_never_exceeded_and_used_up():
    """100/s with a burst of 10 for each of 50 keys, for 3 s: 310 of each may go."""
    bench = Bench()
    keys = [f"k{n}" for n in range(50)]
    for key in keys:
        limit = (Limit(key, rate=100, burst=10),)
        bench.submit(*[f"{key}:{n}" for n in range(400)], on=stream(limits=limit, fairness_key=key))
    workers = Workers(bench, 4, credits=250, hold_ms=7)
    workers.run(3_000)
    times: dict[str, list[int]] = {key: [] for key in keys}
    for at_ms, id in workers.starts:
        times[id.partition(":")[0]].append(at_ms)
    for key in keys:
        most_in_a_window(times[key], rate=100, burst=10)
        assert len(times[key]) >= 0.98 * (10 + 100 * 3), f"{key}: {len(times[key])}"
    invariants.check_quick(bench.state)


def test_a_concurrency_by_key_over_50_keys_and_4_workers_is_never_exceeded_and_used_up():
    """Three at a time of each of 50 keys, 20 ms each, for 2 s: 300 of each may go."""
    bench = Bench()
    keys = [f"k{n}" for n in range(50)]
    for key in keys:
        limit = (Limit(key, concurrency=3),)
        bench.submit(*[f"{key}:{n}" for n in range(350)], on=stream(limits=limit))
    workers = Workers(bench, 4, credits=60, hold_ms=20)
    workers.run(2_000)
    for key in keys:
        out: deque[int] = deque()
        starts = [at_ms for at_ms, id in workers.starts if id.startswith(f"{key}:")]
        for at_ms in starts:
            while out and out[0] <= at_ms - 20:
                out.popleft()
            out.append(at_ms)
            assert len(out) <= 3, f"{len(out)} of {key} at one time"
        assert len(starts) >= 0.98 * 3 * 2_000 / 20, f"{key}: {len(starts)}"


# A far date.


def test_an_intent_due_in_30_days_with_a_lease_of_30_seconds_is_delivered_once():
    """A broker hands it out again with every visibility timeout. Here nobody has it before its time."""
    bench = Bench()
    bench.demand("w", LANE, 10)
    bench.submit("far", on=stream(lease_ms=30_000), delay=30 * DAY_MS)
    for day in range(1, 31):
        if day == 15:  # also across a restart
            bench.save()
            bench = bench.thawed()
            bench.start()
            bench.demand("w", LANE, 10)
        bench.ms = day * DAY_MS - 1
        bench.beat("w")
        started = delivered(bench.at(bench.ms))
        assert started == [] and bench.status("far").name == "SCHEDULED"
        next_ms = bench.next()
        while next_ms is not None and next_ms < day * DAY_MS:
            assert delivered(bench.at(next_ms)) == []
            next_ms = bench.next()
    assert delivered(bench.at(30 * DAY_MS)) == ["far"]
    for _ in range(20):  # it runs for ten leases, and its worker is alive
        bench.ms += 15_000
        assert delivered(bench.beat("w")) == []
        assert delivered(bench.at(bench.ms)) == []
    bench.done("far")
    assert bench.intent("far").delivery == 1 and bench.intent("far").attempt == 1
    assert bench.intent("far").first_dispatch_at_ms == T0 + 30 * DAY_MS
    for _ in range(30):
        bench.ms += DAY_MS
        assert delivered(bench.beat("w")) == []
