"""The power goes off before every operation of a script, and again while the log is being repaired."""

from __future__ import annotations

from copy import deepcopy
from random import Random

import pytest

from duetime.errors import NoSpace
from duetime.log.frame import Frame
from duetime.testing.disk import FaultyDisk, PowerLost, Survival
from tests.torture.log_script import Script, run_now

CHANGING = {
    "write",
    "allocate",
    "truncate",
    "sync_data",
    "sync_file",
    "sync_directory",
    "rename",
    "unlink",
    "open",
}


class CutBeforeEach(FaultyDisk):
    """Before each operation that changes something, tries what a power cut there would leave."""

    def __init__(self, losses: list[tuple[int, Survival]]) -> None:
        super().__init__()
        self.losses = losses
        self.script: Script | None = None
        self.cuts = 0
        self.before = self.cut_power

    def cut_power(self, name: str) -> None:
        if self.script is not None and name in CHANGING:
            script, self.script = self.script, None
            for seed, survival in self.losses:
                disk = self.fork()
                disk.restart(Random(seed * 1_000_003 + len(self.operations)), survival)
                script.check(disk)
                self.cuts += 1
            self.script = script

    def fork(self) -> FaultyDisk:
        disk = FaultyDisk()
        disk.__dict__.update(deepcopy({key: self.__dict__[key] for key in disk.__dict__ if key != "before"}))
        return disk


ALL_AND_NOTHING = [(0, Survival.NOTHING), (0, Survival.EVERYTHING)]


def cut_everywhere(
    seed: int, steps: int, losses: list[tuple[int, Survival]], short_writes: dict[int, int] | None = None
) -> int:
    disk = CutBeforeEach(losses)
    disk.short_writes = short_writes or {}
    script = Script(disk, seed, segment_bytes_max=4000, body_max=1500 if short_writes else 700)
    disk.script = script
    script.start()
    script.steps(steps)
    assert bool(script.refused) == bool(short_writes)
    return disk.cuts


def test_a_power_cut_anywhere_loses_nothing_synced_and_invents_nothing() -> None:
    cuts = cut_everywhere(1, 300, [*ALL_AND_NOTHING, *((seed, Survival.ANYTHING) for seed in range(3))])
    assert cuts > 1_000


def test_a_power_cut_around_writes_that_were_taken_back_does_no_harm() -> None:
    # Long pieces of long frames, and short frames after them: what is left would lie under later ones.
    short_writes = {number: 300 + number * 7 % 900 for number in range(40, 2_000, 5)}
    assert cut_everywhere(2, 150, [(seed, Survival.ANYTHING) for seed in range(6)], short_writes) > 500


def test_a_write_that_was_taken_back_never_comes_back_under_later_frames() -> None:
    for seed in range(600):
        disk = FaultyDisk()
        script = Script(disk, seed)
        script.start()
        at = run_now(script.log.tail())
        disk.short_writes = {len(disk.operations) + number: 3_000 for number in (1, 2)}
        with pytest.raises(NoSpace):
            run_now(script.log.append(at, Frame(1, 0, 0, 1, 0, 0, b"x" * 4_000)))
        disk.short_writes = {}
        # Long enough that a piece of the other may lie under its end, its own start being there.
        script.tried.append((at, Frame(1, 1, 0, 1, 0, 0, b"y" * 800)))
        run_now(script.log.append(*script.tried[-1]))
        disk.restart(Random(seed), Survival.ANYTHING)
        script.check(disk)


def test_a_power_cut_while_many_segments_are_trimmed_leaves_no_gap() -> None:
    disk = CutBeforeEach([*ALL_AND_NOTHING, *((seed, Survival.ANYTHING) for seed in range(6))])
    script = Script(disk, seed=3, segment_bytes_max=400)
    script.start()
    while len([path for path in disk.contents() if path.endswith(".seg")]) < 8:
        script.append()
    script.synced = run_now(script.log.sync())
    script.trimmed = run_now(script.log.tail())
    disk.script = script
    run_now(script.log.trim(script.trimmed))
    assert disk.cuts > 80


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_power_cut_anywhere_of_many_scripts(seed: int) -> None:
    assert cut_everywhere(seed, 300, [(each, Survival.ANYTHING) for each in range(10)])


@pytest.mark.parametrize("seed", range(12))
def test_power_cuts_during_repair_do_no_harm(seed: int) -> None:
    random = Random(seed)
    disk = FaultyDisk()
    script = Script(disk, seed)
    script.start()
    script.steps(40 + seed)
    disk.lose_power()
    disk.restart(random, Survival.ANYTHING)
    repairs = 0
    for number in range(1, 100):
        disk.power_off_before = len(disk.operations) + number
        try:
            log = script.new_log()
            run_now(log.open())
        except PowerLost:
            disk.restart(random, Survival.ANYTHING)
            repairs += 1
            continue
        disk.kill()
        disk.power_off_before = None
        break
    assert repairs > 5
    script.check(disk)
