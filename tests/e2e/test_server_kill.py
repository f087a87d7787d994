"""A server under load is killed with SIGKILL again and again: nothing it promised over HTTP is broken.

Clients create, cancel and patch; a receiver that outlives the server notes every delivery; a listener notes
every end the server has told. In the end everything is let finish, and what was promised is compared with
what was done.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter, defaultdict
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from duetime.clock import SystemClock
from tests.e2e.hook import Arrival, Hook
from tests.e2e.server_load import Client, Promises
from tests.http.listener import Listener, wait_until_ended
from tests.http.server import ServerProcess

CLIENTS = 3
# Small segments and frequent checkpoints: a kill meets rotations, trims and half-written checkpoints.
SETTINGS = {
    "log__segment_bytes_max": 1 << 20,
    "log__history_bytes": 0,
    "store__checkpoint_ms": 100,
    "store__horizon_ms": 1_000,
    # A request that is repeated after a slow restart is not too old.
    "intents__past_tolerance_ms": 600_000,
}


class Story:
    """What happened over all lives of the server."""

    def __init__(self, promises: Promises, arrivals: list[Arrival]) -> None:
        self.promises = promises
        self.by_mark: dict[str, list[Arrival]] = defaultdict(list)
        for arrival in arrivals:
            self.by_mark[arrival.mark].append(arrival)
        self.answered: dict[int, tuple[int, int]] = {}
        self.ended: dict[str, int] = {}
        """By id, the round in which the server told that it was acknowledged."""
        self.killed_at_ms: list[int] = []
        self.finals: dict[str, tuple[str, str]] = {}


def live_through(folder: Path, rounds: int, seed: int) -> Story:
    random, promises = Random(seed), Promises()
    ended: dict[str, int] = {}
    killed_at_ms: list[int] = []
    server = ServerProcess(folder / "data", **SETTINGS)
    with Hook() as hook, server:
        for number in range(rounds):
            if number:
                server.start()
            hook.round = number
            clients = [Client(server.url, hook, promises, f"{seed}-{number}-{n}") for n in range(CLIENTS)]
            wanted = random.choice((1, random.randint(2, 50), random.randint(50, 800)))
            killed_at_ms.append(_load_and_kill(server, clients, promises, wanted, number, ended))
        server.start()
        hook.round = rounds
        last = Client(server.url, hook, promises, f"{seed}-last")
        last.repeat()
        last.close()
        wait_until_ended(server)
        story = Story(promises, hook.arrivals)
        story.answered = dict(hook.answered)
        story.finals = finals(server)
        assert server.stop() == 0
    story.ended, story.killed_at_ms = ended, killed_at_ms
    return story


def _load_and_kill(
    server: ServerProcess,
    clients: list[Client],
    promises: Promises,
    wanted: int,
    number: int,
    ended: dict[str, int],
) -> int:
    """Let the clients ask until so many intents are acknowledged, then kill; gives when."""
    listener = Listener(server, "?status=ACKED")
    clients[0].repeat()
    promises.heard = 0
    threads = [threading.Thread(target=client.run) for client in clients]
    for thread in threads:
        thread.start()
    with promises.news:
        assert promises.news.wait_for(lambda: promises.heard >= wanted, 60)
    killed_at_ms = SystemClock().now_ms()
    server.kill()
    for thread in threads:
        thread.join(30)
    assert listener.over.wait(20)
    listener.close()
    for seen in listener.seen:
        ended.setdefault(seen.data["intentId"], number)
    return killed_at_ms


def finals(server: ServerProcess) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    cursor = ""
    while True:
        page = server.ask("GET", f"/v1/intents?limit=500{cursor}").json
        for each in page["items"]:
            found[each["intentId"]] = (each["status"], (each["lastError"] or {}).get("kind", ""))
        if page["nextCursor"] is None:
            return found
        cursor = f"&cursor={page['nextCursor']}"


def check_nothing_lost(story: Story) -> None:
    promises = story.promises
    assert not promises.wrong, promises.wrong[:5]
    for mark, id in promises.ids.items():
        kind, end = promises.kinds[mark], story.finals.get(id)
        assert end is not None, f"{id} ({kind}, {promises.acks[mark]}) was acknowledged and is gone"
        if mark in promises.cancelled:
            assert end[0] == "CANCELED" and mark not in story.by_mark, f"{id} was cancelled, and is {end}"
        elif kind == "most":
            assert end[0] == "ACKED" or end == ("DEAD_LETTERED", "lost"), f"{id} is {end}"
        elif kind != "cancel":
            assert end[0] == "ACKED", f"{id} ({kind}) is {end}"
        assert end[0] != "ACKED" or mark in story.by_mark, f"{id} is done, and never came"
    ran = [mark for mark in promises.refused if mark in story.by_mark]
    assert not ran, f"refused, and yet delivered: {ran[:5]}"


def check_nothing_early(story: Story) -> None:
    for mark, arrivals in story.by_mark.items():
        promised_ms = story.promises.not_before_ms[mark]
        for arrival in arrivals:
            said_ms = round(datetime.fromisoformat(arrival.execute_at).timestamp() * 1000)
            assert arrival.at_ms >= said_ms, f"{arrival} came too early"
            if story.promises.kinds[mark] != "patch":
                assert said_ms == promised_ms, f"{arrival} has another time than {promised_ms}"


def check_repetitions(story: Story) -> dict[str, int]:
    """Every repetition has a reason; what the kills were the reason of, counted."""
    figures = {"in flight": 0, "answered, not yet recorded": 0, "oldest such answer ms": 0}
    for mark, arrivals in story.by_mark.items():
        ids = {arrival.id for arrival in arrivals}
        assert len(ids) == 1, f"{mark} became {ids}"
        for before, after in pairwise(arrivals):
            assert after.delivery > before.delivery, f"{before} and {after} have one number"
            assert story.promises.kinds[mark] != "most", f"{mark} came twice, and once was promised"
            if after.round == before.round:
                assert before.path == "flaky" and before.attempt == 1, f"{mark} came twice: {arrivals}"
                continue
            status, at_ms = story.answered.get(before.place, (0, 0))
            age_ms = story.killed_at_ms[before.round] - at_ms
            if not at_ms or age_ms < 0:
                figures["in flight"] += 1
            elif status == 200:
                figures["answered, not yet recorded"] += 1
                figures["oldest such answer ms"] = max(age_ms, figures["oldest such answer ms"])
        last = arrivals[-1]
        ended = story.ended.get(last.id, last.round)
        assert ended >= last.round, f"{last} came again after its end was told in round {ended}"
    return figures


def check_and_tell(story: Story, rounds: int) -> dict[str, Any]:
    check_nothing_lost(story)
    check_nothing_early(story)
    repeated = check_repetitions(story)
    # What was answered long before the kill was recorded long before it.
    assert repeated["oldest such answer ms"] < 3_000, repeated
    promises = story.promises
    figures = {
        "kills": rounds,
        "asked": len(promises.kinds),
        "acknowledged": len(promises.ids),
        "by ack": dict(Counter(promises.acks.values())),
        "refused": len(promises.refused),
        "requests in doubt, repeated": promises.doubts,
        "cancelled in time": len(promises.cancelled),
        "deliveries": sum(map(len, story.by_mark.values())),
        "lost, early, against a promise": 0,
        "repeated because of a kill": repeated,
        "interrupted at most once": sum(end == ("DEAD_LETTERED", "lost") for end in story.finals.values()),
        "ends": dict(Counter(status for status, _ in story.finals.values())),
    }
    sys.stderr.write(f"{figures}\n")
    return figures


@pytest.mark.parametrize("seed", [5])
def test_every_promise_survives_kill_9(tmp_path, seed, record_property):
    rounds = 4
    story = live_through(tmp_path, rounds, seed)
    figures = check_and_tell(story, rounds)
    assert figures["acknowledged"] > 50
    record_property("figures", figures)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11])
def test_many_rounds(tmp_path, seed, record_property):
    rounds = int(os.environ.get("SERVER_KILL_ROUNDS", "20"))
    record_property("figures", check_and_tell(live_through(tmp_path, rounds, seed), rounds))


def _story() -> Story:
    promises = Promises()
    promises.kinds, promises.ids, promises.acks = {"m": "plain"}, {"m": "i"}, {"m": "DURABLE"}
    promises.not_before_ms = {"m": 1_000}
    story = Story(promises, [_arrival(0, 1)])
    story.finals, story.killed_at_ms = {"i": ("ACKED", "")}, [5_000, 6_000]
    return story


def _arrival(round: int, delivery: int, at_ms: int = 1_000, id: str = "i") -> Arrival:
    return Arrival(0, round, "m", id, delivery, 1, at_ms, "1970-01-01T00:00:01.000Z", "plain")


def test_the_checks_would_notice():
    """A story with one fault of each kind: every check finds its own."""
    check_nothing_lost(_story())
    check_nothing_early(_story())
    check_repetitions(_story())
    story = _story()
    story.finals = {}
    with pytest.raises(AssertionError, match="is gone"):
        check_nothing_lost(story)
    story = _story()
    story.by_mark = defaultdict(list)
    with pytest.raises(AssertionError, match="never came"):
        check_nothing_lost(story)
    story = _story()
    story.promises.cancelled = {"m"}
    with pytest.raises(AssertionError, match="was cancelled"):
        check_nothing_lost(story)
    story = _story()
    story.promises.refused = {"m"}
    with pytest.raises(AssertionError, match="refused, and yet"):
        check_nothing_lost(story)
    story = _story()
    story.by_mark["m"] = [_arrival(0, 1, at_ms=999)]
    with pytest.raises(AssertionError, match="too early"):
        check_nothing_early(story)
    for second, text in (
        (_arrival(1, 2, id="j"), "became"),
        (_arrival(1, 1), "one number"),
        (_arrival(0, 2), "came twice"),
    ):
        story = _story()
        story.by_mark["m"].append(second)
        with pytest.raises(AssertionError, match=text):
            check_repetitions(story)
    story = _story()
    story.by_mark["m"].append(_arrival(1, 2))
    check_repetitions(story)
    story.ended = {"i": 0}
    with pytest.raises(AssertionError, match="after its end"):
        check_repetitions(story)
    story.ended = {}
    story.promises.kinds["m"] = "most"
    with pytest.raises(AssertionError, match="once was promised"):
        check_repetitions(story)
