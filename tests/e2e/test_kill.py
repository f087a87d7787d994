"""A process under load is killed with SIGKILL again and again: nothing promised is broken.

The child (`killed.py`) tells over a pipe what was acknowledged, and in a side file what ran. Here it is
killed at a random moment of its own progress, started again, and in the end let finish; then what it was
promised is compared with what it did.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.e2e.process import environment

CHILD = Path(__file__).with_name("killed.py")
LEAST = {"least", "thread", "flaky", "again"}


class Run(NamedTuple):
    """One run of a handler, as it was noted before it did anything."""

    place: int
    round: int
    delivery: int
    execute_at_ms: int
    now_ms: int


class Story:
    """Everything that happened over all lives of the child."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        """What was acknowledged."""
        self.ran: dict[str, str] = {}
        """What ran, whether its acknowledgement was heard or not."""
        self.finals: dict[str, tuple[str, str]] = {}
        self.runs: dict[str, list[Run]] = {}
        self.ends: dict[str, list[tuple[int, int]]] = {}
        self.ended: dict[str, int] = {}
        """The round in which an intent's end was on the log."""
        self.messages: dict[str, list[tuple[int, str, int]]] = {}

    def heard(self, line: str) -> None:
        match line.split():
            case ["ack", kind, id]:
                self.kinds[id] = kind
            case ["final", id, status, error]:
                self.finals[id] = (status, error)
            case ["begin"] | ["started"]:
                pass
            case _:
                raise AssertionError(f"the child said {line!r}")

    def read_side_file(self, path: Path) -> None:
        for place, line in enumerate(path.read_text().splitlines()):
            match line.split():
                case [number, "run", kind, id, delivery, execute_at_ms, now_ms]:
                    self.ran[id] = kind
                    run = Run(place, int(number), int(delivery), int(execute_at_ms), int(now_ms))
                    self.runs.setdefault(id, []).append(run)
                case [number, "end", id]:
                    self.ends.setdefault(id, []).append((place, int(number)))
                case [number, "final", id, _]:
                    self.ended[id] = int(number)
                case [number, "message", id, entity, message]:
                    self.messages.setdefault(entity, []).append((place, id, int(message)))
                case _:
                    raise AssertionError(f"the side file says {line!r}")


def start(folder: Path, round_number: int, mode: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(CHILD), str(folder / "data"), str(folder / "side"), str(round_number), mode],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def kill_after(folder: Path, story: Story, round_number: int, lines: int) -> None:
    """Start the child, and kill it when it has said so many lines."""
    child = start(folder, round_number, "load")
    assert child.stdout is not None
    for _ in range(lines):
        line = child.stdout.readline()
        assert line, f"round {round_number} ended by itself with {child.wait()}"
        story.heard(line)
    child.send_signal(signal.SIGKILL)
    rest = child.stdout.read()
    for line in rest.splitlines(keepends=True):
        if line.endswith("\n"):  # a line cut short was not said
            story.heard(line)
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL


def finish(folder: Path, story: Story, round_number: int) -> None:
    child = start(folder, round_number, "finish")
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    for line in out.splitlines():
        story.heard(line)


def lived_through(folder: Path, rounds: int, seed: int) -> Story:
    story, random = Story(), Random(seed)
    for number in range(rounds):
        # Now and then while it still recovers: one line is said before the folder is opened, one after.
        lines = random.choice((1, 2, random.randint(3, 100), random.randint(100, 900)))
        kill_after(folder, story, number, lines)
    kill_after(folder, story, rounds, 400)
    finish(folder, story, rounds + 1)
    story.read_side_file(folder / "side")
    return story


def check_nothing_lost(story: Story) -> None:
    lost = [id for id in story.kinds if id not in story.finals]
    assert not lost, f"{len(lost)} of {len(story.kinds)} acknowledged intents are gone: {lost[:5]}"
    wrong = {
        id: (story.kinds[id], end)
        for id, end in story.finals.items()
        if end[0] != "ACKED" and (story.kinds.get(id, "most") in LEAST or end != ("DEAD_LETTERED", "lost"))
        and id in story.kinds
    }  # fmt: skip
    assert not wrong, f"{len(wrong)} did not end as promised: {list(wrong.items())[:5]}"
    never_ran = [id for id, (status, _) in story.finals.items() if status == "ACKED" and id not in story.runs]
    assert not never_ran, f"acknowledged as done without having run: {never_ran[:5]}"


def check_nothing_early(story: Story) -> None:
    early = {id: r for id, runs in story.runs.items() for r in runs if r.now_ms < r.execute_at_ms}
    assert not early, f"{len(early)} ran before their time: {list(early.items())[:5]}"


def check_repetitions(story: Story) -> int:
    """Every repetition has a later delivery number and a reason; how many a kill was the reason of."""
    by_kill = 0
    for id, runs in story.runs.items():
        for before, after in pairwise(runs):
            assert after.delivery > before.delivery, f"{id} was handed out twice as {after.delivery}"
            assert story.ran[id] not in ("most", "ordered"), f"{id} ran twice, and once was promised"
            if after.round == before.round:
                # Only a handler that failed: its first run ended, and nobody was killed in between.
                assert story.ran[id] == "flaky", f"{id} ran twice in round {after.round}"
            else:
                by_kill += 1
        last = runs[-1]
        assert story.ended.get(id, last.round) >= last.round, f"{id} ran again after its end was on the log"
    return by_kill


def check_entities(story: Story) -> None:
    assert len(story.messages) == 6
    for entity, messages in story.messages.items():
        for (_, id, before), (place, _, after) in pairwise(messages):
            assert before <= after, f"{entity} ran message {after} after {before}"
            if before == after:
                assert entity.startswith("Again"), f"{entity} ran message {after} twice"
            elif story.finals.get(id, ("",))[0] == "ACKED":
                first_end = min(end for end, _ in story.ends[id])
                assert first_end < place, f"{entity} began message {after} while {before} ran"


@pytest.mark.parametrize("seed", [7])
def test_every_promise_survives_kill_9(tmp_path, kill_rounds, seed, record_property):
    rounds = 2 * kill_rounds if kill_rounds < 10 else kill_rounds
    story = lived_through(tmp_path, rounds, seed)
    assert len(story.kinds) > 50 * rounds
    check_nothing_lost(story)
    check_nothing_early(story)
    repeated = check_repetitions(story)
    check_entities(story)
    interrupted = [id for id, end in story.finals.items() if end == ("DEAD_LETTERED", "lost")]
    figures = {
        "rounds": rounds + 1,
        "acknowledged": len(story.kinds),
        "runs": sum(map(len, story.runs.values())),
        "lost, early, twice": 0,
        "repeated because of a kill": repeated,
        "interrupted at most once": len(interrupted),
        **Counter(status for status, _ in story.finals.values()),
    }
    record_property("figures", figures)
    sys.stderr.write(f"{figures}\n")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11])
def test_fifty_rounds(tmp_path, kill_rounds, seed, record_property):
    test_every_promise_survives_kill_9(tmp_path, max(kill_rounds, 50), seed, record_property)


def test_the_checks_would_notice(tmp_path):
    """A story with one fault of each kind: every check finds its own."""
    sound = "0 run least a 1 100 100\n0 end a\n0 final a ACKED\n"

    def told(side: str, *said: str) -> Story:
        story = Story()
        (tmp_path / "side").write_text(side)
        story.read_side_file(tmp_path / "side")
        for line in said:
            story.heard(line)
        return story

    check_nothing_lost(told(sound, "ack least a", "final a ACKED -"))
    with pytest.raises(AssertionError, match="gone"):
        check_nothing_lost(told(sound, "ack least a"))
    with pytest.raises(AssertionError, match="as promised"):
        check_nothing_lost(told(sound, "ack least a", "final a DEAD_LETTERED lost"))
    with pytest.raises(AssertionError, match="without having run"):
        check_nothing_lost(told("", "ack least a", "final a ACKED -"))
    with pytest.raises(AssertionError, match="before their time"):
        check_nothing_early(told("0 run least a 1 100 99\n"))
    with pytest.raises(AssertionError, match="once was promised"):
        check_repetitions(told("0 run most a 1 1 1\n1 run most a 2 1 1\n"))
    with pytest.raises(AssertionError, match="handed out twice"):
        check_repetitions(told("0 run least a 1 1 1\n1 run least a 1 1 1\n"))
    with pytest.raises(AssertionError, match="in round 0"):
        check_repetitions(told("0 run least a 1 1 1\n0 run least a 2 1 1\n", "ack least a"))
    with pytest.raises(AssertionError, match="after its end"):
        check_repetitions(told(sound + "1 run least a 2 1 1\n", "ack least a"))
    six = "".join(f"0 message m{n} Ordered{n} 1\n" for n in range(6))
    with pytest.raises(AssertionError, match="after 2"):
        check_entities(told(six + "0 message a Ordered0 2\n0 message b Ordered0 1\n"))
    with pytest.raises(AssertionError, match="while 2 ran"):
        story = told(six + "0 message a Ordered0 2\n0 message b Ordered0 3\n0 end a\n", "final a ACKED -")
        story.ends["m0"] = [(0, 0)]
        check_entities(story)
