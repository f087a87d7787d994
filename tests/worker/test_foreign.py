"""Workers in bash (HTTP) and TypeScript (gRPC), alone and beside one in Python: nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.http.listener import Listener
from tests.http.server import ServerProcess
from tests.services import Missing
from tests.worker.foreign import (
    BUILD,
    ForeignWorker,
    bash_worker,
    build,
    run_node_program,
    typescript_worker,
)
from tests.worker.process import WorkerProcess

WITHOUT_JQ = ("bash", "sh", "curl", "sed", "sleep", "uname", "mktemp", "rm", "cat")
FUNCTIONS = """
import { appendFileSync } from "node:fs";
export const functions = {
  record: (payload, delivery) => {
    appendFileSync(process.env.RUNS, `${delivery.intentId} ${delivery.delivery}\\n`);
    return new Promise((resolve) => setTimeout(resolve, 20, payload[0][0]));
  },
};
"""
RECORD = 'echo "$DUETIME_INTENT_ID $DUETIME_DELIVERY" >>"$RUNS"'
LEASE_MS = 3_000
BATCH, CONCURRENCY = 5, 4
SENT = "DISPATCHING"


@pytest.fixture(scope="session")
def built(service_missing: Callable[[str], NoReturn]) -> Path:
    """The example in TypeScript, compiled."""
    try:
        return build()
    except Missing as reason:
        service_missing(str(reason))


@pytest.fixture
def events(server: ServerProcess) -> Iterator[Listener]:
    with Listener(server) as listener:
        yield listener


def put(server: ServerProcess, id: str, task: str, payload: Any, **more: Any) -> None:
    server.create(
        intentId=id, task={"name": task, "queue": "q"}, payload=payload, delayMs=0, resultTtlMs=60_000, **more
    )


def result(server: ServerProcess, events: Listener, id: str) -> Any:
    events.reached(id, "ACKED")
    return server.ask("GET", f"/v1/intents/{id}").json["result"]


# Bash.


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not on this machine")
def test_the_exit_code_of_a_command_is_the_outcome(server: ServerProcess, events: Listener):
    command = """
        read -r delivery
        case $delivery in
          *'"n":3'*) exit 75 ;;
          *'"n":2'*) exit 65 ;;
          *) echo '{"x": 1}' ;;
        esac
    """
    once = {"redelivery": {"maxAttempts": 1}}
    with bash_worker(server, "q", "bash", "-c", command) as worker:
        for number in (1, 2, 3):
            put(server, f"b{number}", "t", {"n": number})
        assert result(server, events, "b1") == {"x": 1}
        events.reached("b2", "DEAD_LETTERED")
        events.until(lambda seen: seen.data["intentId"] == "b3" and seen.data["previousStatus"] == SENT)
        assert server.ask("GET", "/v1/intents/b3").json["attempts"] == 0, "snoozed"
        assert worker.stop() == 0
    with bash_worker(server, "q", "false") as worker:
        put(server, "b4", "t", None, **once)
        events.reached("b4", "DEAD_LETTERED")
        assert server.ask("GET", "/v1/intents/b4").json["lastError"]["message"] == "exit code 1"
    with bash_worker(server, "q", "echo", "no json"):
        put(server, "b5", "t", None)
        assert result(server, events, "b5") == "no json\n"


def test_bash_needs_no_jq(server: ServerProcess, events: Listener, tmp_path: Path):
    for name in WITHOUT_JQ:
        program = shutil.which(name)
        assert program is not None
        (tmp_path / name).symlink_to(program)
    with bash_worker(server, "q", "cat", PATH=str(tmp_path)) as worker:
        for number in range(3):
            put(server, f"n{number}", "t", {"text": 'a "quoted" \\ word'})
        for number in range(3):
            assert result(server, events, f"n{number}") is None
        assert worker.stop() == 0


def test_bash_extends_the_lease_of_a_long_command(server: ServerProcess, events: Listener, tmp_path: Path):
    go = tmp_path / "go"
    os.mkfifo(go)
    with bash_worker(server, "q", "cat", str(go), EXTEND_S="0.5") as worker:
        put(server, "long", "t", None, leaseMs=LEASE_MS)
        events.reached("long", "DISPATCHING")
        with Listener(server, "?intentId=clock") as clock:
            server.create(intentId="clock", stream={"name": "nobody"}, delayMs=2 * LEASE_MS)
            clock.reached("clock", "DUE")
        go.write_text('"done"')
        assert result(server, events, "long") == "done"
        assert server.ask("GET", "/v1/intents/long").json["delivery"] == 1
        assert worker.stop() == 0


# TypeScript.


@pytest.mark.service
def test_typescript_runs_functions(server: ServerProcess, events: Listener, built: Path):
    with typescript_worker(built, server, "q") as worker:
        put(server, "t1", "greet", [["you"]])
        put(server, "t2", "add", [[1, 2]])
        put(server, "t3", "add", [["one"]])
        put(server, "t4", "unknown", None)
        assert result(server, events, "t1") == "hello you"
        assert result(server, events, "t2") == 3
        for id, words in (("t3", "two numbers"), ("t4", "no function unknown")):
            events.reached(id, "DEAD_LETTERED")
            assert words in server.ask("GET", f"/v1/intents/{id}").json["lastError"]["message"]
        assert worker.stop() == 0


@pytest.mark.service
def test_typescript_reconnects_after_a_restart(server: ServerProcess, built: Path):
    server.stay()
    with typescript_worker(built, server, "q") as worker:
        for number, end in enumerate((server.kill, server.stop)):
            with Listener(server) as events:
                put(server, f"before{number}", "greet", [["you"]])
                events.reached(f"before{number}", "ACKED")
            end()
            server.start()
            with Listener(server) as events:
                put(server, f"after{number}", "greet", [["you"]])
                events.reached(f"after{number}", "ACKED")
        assert worker.stop() == 0


# Types from the OpenAPI document.

RIGHT = """
import type { components, paths } from "./api";
type Schemas = components["schemas"];

const plain: Schemas["NewIntent"] = { delayMs: 0, task: { name: "t" } };
const full: Schemas["NewIntent"] = {
  executeAt: "2030-01-31T09:00:00Z", callback: { url: "http://localhost/" }, payload: [1, { a: null }],
  priority: "HIGH", precisionTier: "FAST", tags: { team: "a" }, deadline: null,
  redelivery: { maxAttempts: 3 },
};
const settle: Schemas["SettleDeliveries"] = {
  consumer: "w",
  outcomes: [
    { outcome: "done", intentId: "a", delivery: 1, result: { x: 1 } },
    { outcome: "failed", intentId: "b", delivery: 1, message: "no" },
    { outcome: "snoozed", intentId: "c", delivery: 1, delayMs: 5 },
  ],
};
type Claim = paths["/v1/queues/{queue}/claim"]["post"]["requestBody"]["content"]["application/json"];
const claim: Claim = { consumer: "w" };
type Open = "SCHEDULED" | "DUE" | "DISPATCHING" | "BLOCKED";
type Status = Open | "ACKED" | "DEAD_LETTERED" | "EXPIRED" | "CANCELED";

export function shown(intent: Schemas["Intent"]): string {
  const late: number | null = intent.lateMs;
  const status: Status = intent.status;
  const queue: string | undefined = intent.task?.queue;
  return `${status} ${late ?? 0} ${queue} ${intent.lastError?.message}`;
}
export function words(outcome: Schemas["SettleDeliveries"]["outcomes"][number]): string {
  switch (outcome.outcome) {
    case "done": return JSON.stringify(outcome.result);
    case "failed": case "rejected": return outcome.message ?? "";
    case "snoozed": return `${outcome.delayMs}`;
    case "returned": return "";
  }
}
export function why(problem: Schemas["Problem"]): unknown {
  return problem.details["path"] ?? problem.recoveryHint.waitMs;
}
console.log(plain, full, settle, claim);
"""
WRONG = """
import type { components } from "./api";
type Schemas = components["schemas"];
type Outcome = Schemas["SettleDeliveries"]["outcomes"][number];
// @ts-expect-error: a task has a name
export const a: Schemas["NewIntent"] = { delayMs: 0, task: {} };
// @ts-expect-error: there is no such tier
export const b: Schemas["NewIntent"] = { delayMs: 0, precisionTier: "SLOW" };
// @ts-expect-error: there is no such field
export const c: Schemas["NewIntent"] = { delayMs: 0, que: "q" };
// @ts-expect-error: a snooze has a delay
export const d: Outcome = { outcome: "snoozed", intentId: "a", delivery: 1 };
// @ts-expect-error: a claim names its consumer
export const e: Schemas["ClaimDeliveries"] = { max: 1 };
// @ts-expect-error: it may be null
export const f = (intent: Schemas["Intent"]): number => intent.lateMs;
// @ts-expect-error: a payload may be anything
export const g = (intent: Schemas["Intent"]): string => intent.payload;
"""


@pytest.mark.service
def test_the_openapi_document_gives_sound_types(server: ServerProcess, built: Path):
    """With the default settings of the generator, and tsc --strict."""
    (BUILD / "openapi.json").write_bytes(server.ask("GET", "/openapi.json").body)
    run_node_program("openapi-typescript", "openapi.json", "-o", "api.ts")
    (BUILD / "right.ts").write_text(RIGHT)
    (BUILD / "wrong.ts").write_text(WRONG)
    run_node_program("tsc", "--strict", "--noEmit", "right.ts", "wrong.ts")


# All of them together.


class Fleet:
    """Workers that write what they ran, each into a file of its own."""

    def __init__(self, server: ServerProcess, built: Path, folder: Path) -> None:
        self._server = server
        self._built = built
        self._folder = folder
        (folder / "functions.mjs").write_text(FUNCTIONS)

    def runs(self, name: str) -> list[tuple[str, int]]:
        path = self._folder / name
        lines = path.read_text().splitlines() if path.exists() else []
        return [(id, int(delivery)) for id, delivery in map(str.split, lines)]

    def both(self, share: int) -> bool:
        """Whether each of the foreign workers ran so many, and bash is in the middle of a batch."""
        bash, typescript = len(self.runs("bash")), len(self.runs("typescript"))
        return min(bash, typescript) >= share and bash % BATCH > 0

    def bash(self) -> ForeignWorker:
        return bash_worker(
            self._server,
            "shared",
            "sh",
            "-c",
            RECORD,
            RUNS=str(self._folder / "bash"),
            EXTEND_S="1",
            BATCH=str(BATCH),
        )

    def typescript(self) -> ForeignWorker:
        functions = (self._folder / "functions.mjs").as_uri()
        runs = str(self._folder / "typescript")
        return typescript_worker(
            self._built, self._server, "shared", FUNCTIONS=functions, RUNS=runs, CONCURRENCY=str(CONCURRENCY)
        )

    def python(self) -> WorkerProcess:
        return WorkerProcess(
            self._server,
            target="tests.worker.records:app",
            options=("--concurrency", "10"),
            variables={"RUNS": str(self._folder / "python")},
        )


def everything(server: ServerProcess) -> dict[str, Any]:
    found: dict[str, Any] = {}
    cursor = ""
    while True:
        page = server.ask("GET", f"/v1/intents?limit=500{cursor}").json
        found |= {each["intentId"]: each for each in page["items"]}
        if page["nextCursor"] is None:
            return found
        cursor = f"&cursor={page['nextCursor']}"


@pytest.mark.service
@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_three_languages_drain_a_queue_together_and_nothing_is_lost(
    server: ServerProcess, built: Path, tmp_path: Path, count: int
):
    ids = [f"job-{number}" for number in range(count)]
    for start in range(0, count, 1_000):
        jobs = [
            {
                "intentId": id, "task": {"name": "record", "queue": "shared"}, "payload": [[number]],
                "delayMs": 0, "leaseMs": 2 * LEASE_MS, "redelivery": {"maxAttempts": 20},
            }
            for number, id in enumerate(ids[start : start + 1_000])
        ]  # fmt: skip
        assert server.ask("POST", "/v1/intents/batch", jobs).json["created"] == len(jobs)
    fleet = Fleet(server, built, tmp_path)
    kills = 0
    with Listener(server, "?status=ACKED") as events:
        acked: set[str] = set()
        read = 0

        def more(_: object) -> bool:
            return len(events.seen) > read

        def until(enough: Callable[[], bool]) -> None:
            """Wait for more jobs to end, until there are enough, or all."""
            nonlocal read
            while not enough() and len(acked) < count:
                events.until(more, 60)
                new = events.seen[read:]
                read += len(new)
                acked.update(seen.data["intentId"] for seen in new)

        bash, typescript = fleet.bash(), fleet.typescript()
        try:
            for share in (3, 8):
                until(partial(fleet.both, share))
                assert len(acked) < count, "they are killed while there is work"
                bash.kill()
                typescript.kill()
                kills += 1
                bash, typescript = fleet.bash(), fleet.typescript()
            with fleet.python():
                until(lambda: False)
        finally:
            bash.kill()
            typescript.kill()
    found = everything(server)
    assert {found[id]["status"] for id in ids} == {"ACKED"} and len(found) == count
    runs = {name: fleet.runs(name) for name in ("bash", "typescript", "python")}
    assert all(runs.values()), {name: len(each) for name, each in runs.items()}
    ran = Counter(key for each in runs.values() for key in each)
    assert set(ran.values()) == {1}, "no delivery ran twice"
    assert {id for id, _ in ran} == set(ids), "every job ran"
    assert all((id, found[id]["delivery"]) in ran for id in ids), "the delivery that counted is one that ran"
    again = len(ran) - count
    assert again <= kills * (BATCH + CONCURRENCY), "only what was under way at a kill ran again"
    print(json.dumps({**{name: len(each) for name, each in runs.items()}, "again": again, "kills": kills}))
