"""The kernel alone: submit, fire, settle, without log or disk."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from bench.figure import Figure
from duetime.kernel.kernel import Kernel
from duetime.limits import TIER_PERMITS
from duetime.protocol.command import Advance, Command, Settle, Start, Submit
from duetime.protocol.effect import Deliver
from duetime.protocol.intent import Item
from duetime.protocol.outcome import Done, Settlement
from duetime.protocol.record import Record
from duetime.protocol.terms import Limit, Task, Terms, Tier
from duetime.store.memory import MemoryStore

COUNT = 100_000
BATCH = 1_000
ROUNDS = 5


# Limits that let everything pass: what is measured is what they cost.
LIMITS = (Limit("all", rate=1_000_000, burst=1_000_000), Limit("tenant", concurrency=1_000_000))
TENANTS = 10


def run() -> list[Figure]:
    plain, limited, shared = [], [], []
    for _ in range(ROUNDS):  # in turn, so that a slow moment is everybody's
        plain.append(_lifecycles(_terms()))
        limited.append(_lifecycles(_terms(limits=LIMITS)))
        shared.append(_lifecycles(*(_terms(fairness_key=f"t{n}") for n in range(TENANTS))))
    note = f"best {max(plain):,.0f}; aim 150,000"
    middle = median(plain)
    return [
        Figure("kernel: submit, fire, settle", middle, "lifecycles/s", floor=80_000, note=note),
        Figure("... with a rate and a concurrency, relative", median(limited) / middle, "", floor=0.7),
        Figure(f"... with {TENANTS} fairness keys, relative", median(shared) / middle, ""),
    ]


def _terms(**more: Any) -> Terms:
    return Terms(Task("bench"), "task:default", Tier.ULTRA, **more)


def _lifecycles(*terms: Terms) -> float:
    kernel = Kernel(MemoryStore())
    at_ms, seq = 1_800_000_000_000, 0

    def apply(command: Command) -> list[Deliver]:
        nonlocal seq
        seq += 1
        return [e for e in kernel.apply(Record(seq, at_ms, command)).effects if type(e) is Deliver]

    apply(Start(1))
    kernel.state.timers.extend(at_ms + 60_000, 1)
    submits = [
        Submit(
            terms,
            tuple(Item(f"{b}-{n}", n % len(terms), at_ms + 100, b"[[1]]", fresh=True) for n in range(BATCH)),
        )
        for b in range(COUNT // BATCH)
    ]
    done = Done()
    start = time.perf_counter()
    for submit in submits:
        apply(submit)
    at_ms += 101
    settled = 0
    while out := apply(Advance()):  # each wakes a slice of what is due
        while out:
            settled += len(out)
            out = apply(Settle(tuple(Settlement(each.id, each.delivery, done) for each in out)))
    seconds = time.perf_counter() - start
    assert settled == COUNT, f"{settled} of {COUNT} settled"
    assert TIER_PERMITS[Tier.ULTRA] < BATCH
    return COUNT / seconds
