"""What a simulation did, in numbers that can be added up, and what should have happened but did not."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import get_args

from msgspec import Struct, field

from duetime.protocol.command import Command
from duetime.protocol.outcome import Outcome
from duetime.protocol.transitions import TRANSITIONS
from duetime.testing.sim.faults import Fault

EXPECTED: dict[str, tuple[str, ...]] = {
    "commands": tuple(kind.__name__ for kind in get_args(Command)),
    "transitions": tuple(f"{old.name} -> {new.name}" for old, ways in TRANSITIONS.items() for new in ways),
    "outcomes": tuple(kind.__name__ for kind in get_args(Outcome)),
    "faults": tuple(fault.value for fault in Fault),
}


class SimulationReport(Struct):
    """Add reports with `merge`; the order does not matter."""

    seeds: int = 0
    steps: int = 0
    records: int = 0
    starts: int = 0
    """Starts of the engine: one for each seed, and one after each crash."""
    intents: int = 0
    simulated_ms: int = 0
    commands: dict[str, int] = field(default_factory=dict)
    transitions: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)
    digests: dict[int, str] = field(default_factory=dict)
    """By seed: a hash over every record, effect and reply in order."""

    def merge(self, other: SimulationReport) -> None:
        for name in ("seeds", "steps", "records", "starts", "intents", "simulated_ms"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("commands", "transitions", "outcomes", "faults", "refusals"):
            mine: dict[str, int] = getattr(self, name)
            for key, count in getattr(other, name).items():
                mine[key] = mine.get(key, 0) + count
        self.digests.update(other.digests)

    def missing(self) -> list[str]:
        """What should have happened but never did."""
        return [
            f"{group[:-1]} {name}"
            for group, names in EXPECTED.items()
            for name in names
            if not getattr(self, group).get(name)
        ]

    def digest(self) -> str:
        """One hash over all seeds."""
        return sha256("".join(self.digests[seed] for seed in sorted(self.digests)).encode()).hexdigest()


def merged(reports: Iterable[SimulationReport]) -> SimulationReport:
    total = SimulationReport()
    for report in reports:
        total.merge(report)
    return total
