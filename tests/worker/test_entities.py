"""Messages to entities run on workers: of every id, one at a time for each, in order, whoever dies."""

from __future__ import annotations

import signal
from collections import defaultdict

import pytest

from duetime.insight.rules import RULES
from tests.worker import functions
from tests.worker.process import WorkerProcess

ACCOUNTS, MESSAGES = 6, 5
UNSERVED = next(rule for rule in RULES if rule.code == "NO_CONSUMER")


def sent(told) -> dict[str, int]:
    """Messages to some accounts, in turn; how many each is to get."""
    for number in range(MESSAGES):
        for account in range(ACCOUNTS):
            functions.accounts(str(account)).tell("deposit", told.address, number).wait()
    return {str(account): MESSAGES for account in range(ACCOUNTS)}


def heard(told, wanted: dict[str, int]) -> dict[str, list[tuple[str, int, int]]]:
    """What was done to each account, until all of it has been done."""
    found: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    ended: set[tuple[str, int]] = set()
    while len(ended) < sum(wanted.values()):
        word = told.next()
        found[word["account"]].append((word["event"], word["number"], word["delivery"]))
        if word["event"] == "ended":
            ended.add((word["account"], word["number"]))
    return found


def check_order(found: dict[str, list[tuple[str, int, int]]]) -> None:
    """Nobody begins before the one before it has ended; one that was cut off begins again."""
    for account, steps in found.items():
        last = -1
        for event, number, _ in steps:
            if event == "began":
                assert number == last + 1, f"account {account}: {steps}"
            elif number == last + 1:
                last = number


def test_each_entity_gets_its_messages_in_order_over_several_workers(server, app, told):
    wanted = sent(told)
    with WorkerProcess(server), WorkerProcess(server, options=("--entities", "Account")):
        found = heard(told, wanted)
    check_order(found)
    assert all(len(steps) == 2 * MESSAGES for steps in found.values()), "each ran once"


def test_a_worker_that_dies_is_followed_by_another(server, app, told, tmp_path):
    first = functions.accounts("a").tell("deposit", told.address, 0, str(tmp_path / "go")).wait()
    second = functions.accounts("a").tell("deposit", told.address, 1).wait()
    with WorkerProcess(server) as one:
        assert told.next()["event"] == "began"
        with WorkerProcess(server):
            one.signal(signal.SIGKILL)
            one.wait()
            again = told.next()
            assert (again["number"], again["delivery"]) == (0, 2), "the second waits for it"
            (tmp_path / "go").touch()
            assert first.result(timeout="30s").wait() == 0
            assert second.result(timeout="30s").wait() == 1


def test_other_types_and_queues_are_not_taken(server, app, told, clock):
    with WorkerProcess(server, options=("--queues", "default")):
        handle = functions.accounts("a").tell("deposit", told.address, 0).wait()
        functions.told.schedule(told.address).wait().result(timeout="30s").wait()
        assert told.next().get("event") is None, "a task ran, and no message"
        assert handle.status().wait().name == "DUE"
        assert handle.why().wait().code == "no-worker"
        assert not anomalies(server), "health sees it, and waits whether it stays"
        clock.advance(UNSERVED.after_ms)
        assert "entities:Account" in [each["subject"] for each in anomalies(server)]


def anomalies(server) -> list[dict[str, str]]:
    """What health says of work that nobody asks for."""
    found = server.ask("GET", "/health").json["anomalies"]
    return [each for each in found if each["code"] == "NO_CONSUMER"]


@pytest.mark.parametrize(
    ("options", "words"),
    [(("--entities", "Cart"), "no entity type 'Cart'"), (("--entities", ","), "is empty")],
)
def test_a_wrong_type_is_reported(options, words):
    worker = WorkerProcess(options=options)
    assert worker.wait() == 1 and words in worker.words[0]


def test_an_unknown_message_ends_at_once_and_the_next_one_runs(server, app, told):
    """Unknown to the server when it came, and known to nobody when a worker comes."""
    target = {"type": "Account", "id": "a", "message": "depsit"}
    unknown = server.create(entity=target, delayMs=0)["intentId"]
    next_one = functions.accounts("a").tell("deposit", told.address, 0).wait()
    with WorkerProcess(server):
        assert next_one.result(timeout="30s").wait() == 0
        found = server.ask("GET", f"/v1/intents/{unknown}").json
        assert found["status"] == "DEAD_LETTERED"
        assert found["lastError"]["message"] == (
            "entities of the type 'Account' take no message 'depsit': it takes deposit"
        )
        refused = server.ask("POST", "/v1/intents", {"entity": target, "delayMs": 0})
        assert (refused.status, refused.json["errorCode"]) == (422, 42208)
        assert "take no message 'depsit'" in refused.json["message"]
        assert refused.json["recoveryHint"]["suggestion"] == "Its messages are: deposit."
