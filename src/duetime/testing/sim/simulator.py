"""Deterministic simulation: the real pump, inbox, kernel, recovery and stores under seeded faults.

The same seed does the same in every process (see `simulation`); a failure names the command that
repeats it.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from duetime.testing.sim.report import EXPECTED, SimulationReport, merged
from duetime.testing.sim.simulation import Simulation

__all__ = ["EXPECTED", "STEPS", "SimulationReport", "Violation", "merged", "run_seed", "run_seeds"]

STEPS = 160
# Seeds that one process runs before it reports.
_CHUNK = 5


class Violation(AssertionError):
    """A law was broken. The text names the seed and shows the last steps."""

    def __init__(self, seed: int, steps: int, reason: str, trace: list[str]) -> None:
        super().__init__(seed, steps, reason, trace)  # as given, so that it can cross to another process
        self.seed, self.reason, self.trace = seed, reason, trace
        option = "" if steps == STEPS else f" --steps {steps}"
        self.command = f"duetime simulate --seed {seed}{option}"

    def __str__(self) -> str:
        shown = "\n".join(self.trace)
        return f"{self.reason}\n\nThe last steps:\n{shown}\n\nRepeat it: {self.command}"


def run_seed(seed: int, steps: int = STEPS, tell: Callable[[str], None] | None = None) -> SimulationReport:
    """Both acts of one seed. Raises `Violation`; `tell` is called with every step."""
    simulation = Simulation(seed, tell)
    try:
        simulation.play(steps)
        return simulation.report()
    except Exception as error:
        reason = str(error) if isinstance(error, AssertionError) and str(error) else repr(error)
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"seed {seed}, step {simulation.step}: {reason} ({where.name}:{where.lineno})"
        raise Violation(seed, steps, reason, list(simulation.shown)) from error
    finally:
        simulation.close()


def run_seeds(seeds: range, steps: int = STEPS, jobs: int = 1) -> Iterator[SimulationReport]:
    """The reports of many seeds, a few at a time as they are done; raises the first `Violation`."""
    chunks = [seeds[first : first + _CHUNK] for first in range(0, len(seeds), _CHUNK)]
    if jobs <= 1:
        yield from (_run_chunk(chunk, steps) for chunk in chunks)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        running = {pool.submit(_run_chunk, chunk, steps) for chunk in chunks}
        try:
            for done in as_completed(running):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _run_chunk(seeds: range, steps: int) -> SimulationReport:
    return merged(run_seed(seed, steps) for seed in seeds)
