"""Seeds: no law is broken, everything ends, and the same seed does the same in every process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from duetime.cli import main as cli
from duetime.kernel import timers
from duetime.kernel.commands import advance
from duetime.kernel.queues import dispatch
from duetime.testing.sim.report import EXPECTED, SimulationReport, merged
from duetime.testing.sim.simulator import STEPS, Violation, run_seed, run_seeds
from tests.tidy.source import ROOT

CHUNKS = 3
SEEDS_LEAST = 60


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_law_is_broken(seeds, chunk):
    # A little more than elsewhere: this is the test that finds what nobody thought of.
    for seed in range(seeds.start, max(seeds.stop, seeds.start + SEEDS_LEAST))[chunk::CHUNKS]:
        assert run_seed(seed).seeds == 1


@pytest.mark.parametrize("most", [1, 3])
def test_no_law_is_broken_when_a_record_does_little(seeds, most, monkeypatch):
    monkeypatch.setattr(advance, "WAKES_MAX", most)
    monkeypatch.setattr(dispatch, "HANDS_MAX", most)
    monkeypatch.setattr(dispatch, "HANDS_TURN", 1)
    monkeypatch.setattr(timers, "_PART", 4)
    for seed in range(seeds.start, seeds.start + 15):
        assert run_seed(seed).seeds == 1


@pytest.mark.slow
def test_many_seeds_do_everything_there_is(seeds):
    report = merged(run_seeds(seeds, jobs=2))
    assert report.seeds == len(seeds)
    if report.seeds >= 200:
        assert report.missing() == []


DIGEST = "from duetime.testing.sim.simulator import *; print(merged(run_seeds(range(101, 105))).digest())"

# The order of a set gets into what the world is told: in one process nobody can see it.
LEAK = """
from msgspec.structs import replace
from duetime.kernel.queues import dispatch
real = dispatch.Deliver
dispatch.Deliver = lambda *fields: replace(real(*fields), payload=min({"a", "b", "c"}, key=hash).encode())
"""


def digests(code):
    """What the code prints in processes in which strings hash differently."""
    found = set()
    for hash_seed in ("0", "1", "31337"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": "src"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        found.add(run.stdout)
    return found


def test_the_same_seed_does_the_same_in_every_process():
    assert len(digests(DIGEST)) == 1


def test_the_order_of_a_set_would_be_noticed():
    assert len(digests(LEAK + DIGEST.replace("101, 105", "101, 102"))) > 1


def test_other_seeds_do_something_else():
    assert len(set(merged(run_seeds(range(1, 4), steps=40)).digests.values())) == 3


def test_reports_add_up():
    one, other = run_seed(1, 30), run_seed(2, 30)
    total = merged([one, other])
    assert total.seeds == 2
    assert total.records == one.records + other.records
    assert total.commands["Start"] == one.commands["Start"] + other.commands["Start"]
    assert SimulationReport().missing()[0] == "command Start"
    assert len(SimulationReport().missing()) == sum(len(names) for names in EXPECTED.values())


def test_a_violation_says_how_to_repeat_it():
    violation = Violation(7, STEPS, "seed 7, step 3: it broke", ["   1 one", "   2 two"])
    assert str(violation).endswith("Repeat it: duetime simulate --seed 7")
    assert "   2 two" in str(violation)
    assert Violation(7, 30, "", []).command == "duetime simulate --seed 7 --steps 30"


def test_the_command_runs_seeds_and_tells_what_happened(capsys):
    assert cli.main(["simulate", "--seeds", "1..2", "--steps", "30", "--jobs", "1", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["seeds"] == 2 and shown["commands"]["Submit"] > 0 and shown["faults"].keys()


def test_the_command_shows_every_step(capsys):
    assert cli.main(["simulate", "--seed", "3", "--steps", "30", "--trace"]) == 0
    shown = capsys.readouterr()
    assert "@0 Start" in shown.out and "No guarantee was violated." in shown.err


@pytest.mark.parametrize("arguments", [["--seeds", "a..b"], ["--seeds", "9..1"], ["--trace"]])
def test_the_command_refuses_what_it_cannot_run(arguments, capsys):
    assert cli.main(["simulate", *arguments]) == cli.EXIT_USAGE


def test_the_command_names_the_seed_that_broke(capsys, monkeypatch):
    from duetime.kernel.commands import settle

    monkeypatch.setattr(settle, "apply", lambda state, command: [True] * len(command.settlements))
    assert cli.main(["simulate", "--seeds", "1..5", "--jobs", "1"]) == cli.EXIT_ERROR
    assert "Repeat it: duetime simulate --seed 1" in capsys.readouterr().err
