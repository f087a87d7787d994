"""Writes a data folder with everything in it, by a real server of the version that is to be kept.

Run it with the sources of that version before today's:

    PYTHONPATH=path/to/that/version/src python -m tests.golden.write_folder NAME

It makes `NAME.tar.xz`: the folder as `kill -9` left it, and `answers.json`, the server's last answers. The
archive never changes again: `test_folder` opens a copy with today's engine. The first half of the contents
is in the folder's checkpoint, the second half only on its log.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from duetime import App, Retry
from tests.e2e.process import environment
from tests.http.life import now_s
from tests.http.listener import Listener
from tests.http.server import ServerProcess
from tests.receiver import Hooks, Say
from tests.worker.process import WorkerProcess

FOLDER = Path(__file__).parent
# The receiver of the webhooks. The URLs are in the folder, so tests must find nobody at this address.
ADDRESS = ("127.86.12.9", 47_928)
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
ONCE = {"maxAttempts": 1}

# What the worker runs.
app = App("http://127.0.0.1:1")


@app.task(name="add")
async def add(a: int, b: int) -> int:
    return a + b


@app.task(name="fail", retry=Retry(max_attempts=1))
async def fail() -> None:
    raise ValueError("this task always fails")


@app.task(name="hold", queue="slow")
async def hold() -> None:
    await asyncio.Event().wait()


@app.entity(name="Account")
class Account:
    def __init__(self, id: str) -> None:
        self.id = id

    async def deposit(self, amount: int) -> int:
        return amount

    async def hold(self) -> None:
        await asyncio.Event().wait()


class Writer:
    """Fills the folder of a server, with a token of its own."""

    def __init__(self, server: ServerProcess, hooks: Hooks, token: str) -> None:
        self.server = server
        self.hooks = hooks
        self.headers = {"x-duetime-token": token}

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.server.ask(method, path, body, self.headers)
        assert answer.status in (200, 201), (method, path, answer.status, answer.body)
        return answer.json

    def new(self, id: str, **fields: Any) -> None:
        """A new intent; in an hour and for a stream without subscribers, unless told otherwise."""
        if not {"callback", "task", "entity", "stream"} & fields.keys():
            fields["stream"] = {"name": "news"}
        if not {"executeAt", "delayMs"} & fields.keys():
            fields["delayMs"] = HOUR_MS
        self.ask("POST", "/v1/intents", {"intentId": id, **fields})

    def events(self) -> Listener:
        return Listener(self.server, headers=self.headers)

    # The first half: in the checkpoint.

    def scheduled(self) -> None:
        """Waiting intents of every target, tier and term."""
        self.new(
            "scheduled-all-terms",
            callback={
                "url": self.hooks.url("all"),
                "method": "PUT",
                "headers": {"X-Shop": "7"},
                "body": {"order": 7},
            },
            payload={"unused": [1, 2.5, None, "é"]},
            precisionTier="ULTRA",
            ackLevel="DURABLE",
            guarantee="AT_MOST_ONCE",
            priority=120,
            redelivery={
                "maxAttempts": 7,
                "backoff": "fixed",
                "initialDelayMs": 2_000,
                "maxDelayMs": 9_000,
                "multiplier": 1.5,
                "jitter": False,
            },
            timeoutMs=11_000,
            leaseMs=22_000,
            resultTtlMs=HOUR_MS,
            expiredAction="DEAD_LETTER",
            deadline="2035-01-01T00:00:00Z",
            idempotencyKey="all-terms",
            onDuplicate="return",
            tags={"shop": "7", "kind": "all"},
            limits=[{"key": "shop:7", "rate": "20/s", "burst": 3, "concurrency": 4}],
            fairnessKey="tenant-7",
            fairnessWeight=3,
            shardKey="shard-7",
            traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        )
        for tier in ("ULTRA", "FAST", "HIGH", "STANDARD", "ECONOMY"):
            self.new(f"tier-{tier}", callback={"url": self.hooks.url("tier")}, precisionTier=tier)
        self.new("scheduled-slo", slo={"maxTardinessMs": 80})
        self.new("scheduled-batch", callback={"url": self.hooks.url("batch"), "batch": True})
        self.new("scheduled-task", task={"name": "add"}, payload=[[1, 2], {}])
        for number in range(1, 4):
            self.new(
                f"scheduled-entity-{number}",
                entity={"type": "Account", "id": "42", "message": "deposit"},
                payload=[[number], {}],
            )
        self.new("scheduled-stream", payload="news")
        self.new("scheduled-far", delayMs=400 * DAY_MS)
        self.new("scheduled-patched", tags={"is": "old"})
        self.ask("PATCH", "/v1/intents/scheduled-patched", {"tags": {"is": "new"}, "priority": "HIGH"})
        self.new("canceled-late")
        self.new("patched-late", payload="old")
        self.new("due-after-restart", delayMs=10 * 60_000, task={"name": "add"}, payload=[[3, 4], {}])

    def finished(self, events: Listener) -> None:
        """One intent in each final status, by each way to get there."""
        ok = self.hooks.says("ok", Say(200, b'{"fine": true}'))
        self.new("acked-callback", callback={"url": ok}, delayMs=0, precisionTier="FAST")
        self.new("acked-task", task={"name": "add"}, payload=[[20, 22], {}], delayMs=0)
        self.new(
            "acked-entity",
            entity={"type": "Account", "id": "1", "message": "deposit"},
            payload=[[5], {}],
            delayMs=0,
        )
        self.new("acked-key", callback={"url": ok}, delayMs=0, idempotencyKey="acked", onDuplicate="return")
        self.new(
            "acked-unique-time",
            callback={"url": ok},
            delayMs=0,
            unique={"key": "daily", "until": "TIME", "forMs": DAY_MS},
        )
        refuses = self.hooks.says("refuses", Say(418))
        for id in ("dead-callback", "dead-revived"):
            self.new(id, callback={"url": refuses}, delayMs=0, redelivery=ONCE)
        self.new("dead-task", task={"name": "fail"}, delayMs=0, redelivery=ONCE)
        soon = {"executeAt": now_s(0), "deadline": now_s(300)}
        self.new("expired", **soon)
        self.new("dead-expired", **soon, expiredAction="DEAD_LETTER")
        self.new("canceled")
        self.ask("POST", "/v1/intents/canceled/cancel")
        busy = self.hooks.says("busy", Say(503))
        self.new(
            "retrying",
            callback={"url": busy},
            delayMs=0,
            redelivery={"maxAttempts": 3, "backoff": "fixed", "initialDelayMs": HOUR_MS, "jitter": False}
            | {"maxDelayMs": HOUR_MS},
        )
        for id in ("acked-callback", "acked-task", "acked-entity", "acked-key", "acked-unique-time"):
            events.reached(id, "ACKED")
        for id in ("dead-callback", "dead-revived", "dead-task", "dead-expired"):
            events.reached(id, "DEAD_LETTERED")
        events.reached("expired", "EXPIRED")
        events.reached("retrying", "DISPATCHING")
        events.until(lambda seen: events.of("retrying")[-1:] == ["SCHEDULED"])
        self.ask("POST", "/v1/intents/dead-revived/revive", {"executeAt": now_s(HOUR_MS)})

    def waiting(self, events: Listener) -> None:
        """What is due and cannot start, and what waits for other intents."""
        self.new("due-stream", delayMs=0)
        self.ask("POST", "/v1/admin/lanes/task:paused/pause")
        self.new("due-paused", delayMs=0, task={"name": "add", "queue": "paused"}, payload=[[1, 1], {}])
        limited = {"concurrency": 1, "rate": "100/m", "burst": 2, "pendingMax": 50, "priority": 30}
        self.ask("PATCH", "/v1/admin/lanes/task:limited", limited)
        for number in (1, 2):
            self.new(
                f"due-limited-{number}",
                delayMs=0,
                task={"name": "add", "queue": "limited"},
                payload=[[number, 1], {}],
            )
        for id in ("due-stream", "due-paused", "due-limited-1", "due-limited-2"):
            events.reached(id, "DUE")
        self.ask("PATCH", "/v1/admin/tiers/FAST", {"concurrency": 77})
        task = {"task": {"name": "add"}, "payload": [[0, 0], {}]}
        self.new("chain-1", **task)
        self.new("chain-2", after=["chain-1"], delayMs=0, **task)
        self.new("chain-3", after=["chain-2"], delayMs=0, afterOn="END", **task)
        ok = self.hooks.url("ok")
        members = [{"callback": {"url": ok}, "delayMs": ms} for ms in (0, 0, HOUR_MS)]
        then = {"callback": {"url": self.hooks.url("then")}, "delayMs": 0}
        self.ask("POST", "/v1/groups", {"groupId": "group-running", "members": members, "then": then})
        self.ask(
            "POST",
            "/v1/groups",
            {"groupId": "group-open", "size": 3, "members": members[:1], "then": then, "on": "END"},
        )
        for id in ("group-running.0", "group-running.1", "group-open.0"):
            events.reached(id, "ACKED")

    def keys(self) -> None:
        """Keys, unique claims and collapse claims that waiting intents hold."""
        self.new("key-live", idempotencyKey="live")
        for until in ("START", "END"):
            self.new(f"unique-{until}", unique={"key": f"until-{until}", "until": until})
        self.new("unique-TIME", unique={"key": "until-TIME", "until": "TIME", "forMs": DAY_MS})
        for collapse in ("DEBOUNCE", "THROTTLE"):
            for number in (1, 2):
                self.new(
                    f"collapse-{collapse}-{number}",
                    collapseKey=f"key-{collapse}",
                    collapse=collapse,
                    payload=number,
                    delayMs=number * HOUR_MS,
                )

    def schedules(self) -> None:
        task = {"task": {"name": "add"}, "payload": [[2, 2], {}]}
        callback = {"callback": {"url": self.hooks.url("tick")}, "tags": {"by": "cron"}}
        for id, fields in {
            "cron": {"cron": "30 9 * * MON-FRI", "zone": "Europe/Paris", "intent": callback},
            "every": {"everyMs": HOUR_MS, "intent": task, "overlap": "SKIP", "misfire": "CATCH_UP"}
            | {"catchUp": 3},
            "paused": {"everyMs": HOUR_MS, "intent": task, "jitterMs": 60_000},
            "ending": {"everyMs": HOUR_MS, "intent": task, "end": "2035-01-01T00:00:00Z", "source": "app"},
            "dropped": {"everyMs": HOUR_MS, "intent": task},
        }.items():
            self.ask("PUT", f"/v1/schedules/{id}", fields)
        self.ask("POST", "/v1/schedules/paused/pause")
        self.ask("POST", "/v1/schedules/ending/trigger")

    # The second half: only on the log.

    def tail(self, events: Listener) -> None:
        """Changes of what is in the checkpoint, new intents, and deliveries that never ended."""
        self.ask("POST", "/v1/intents/canceled-late/cancel")
        self.ask("PATCH", "/v1/intents/patched-late", {"payload": "new"})
        self.ask("DELETE", "/v1/schedules/dropped")
        self.ask(
            "PUT", "/v1/schedules/tail", {"everyMs": 2 * HOUR_MS, "intent": {"stream": {"name": "news"}}}
        )
        self.ask("POST", "/v1/admin/lanes/task:paused-late/pause")
        self.new("tail-scheduled", payload={"in": "the log"}, idempotencyKey="tail")
        self.new("tail-unique", unique={"key": "tail"})
        self.new("tail-acked", callback={"url": self.hooks.url("ok")}, delayMs=0)
        self.new("tail-blocked", after=["tail-scheduled"], delayMs=0)
        events.reached("tail-acked", "ACKED")
        one = {"limits": [{"key": "one-at-a-time", "concurrency": 1}], "delayMs": 0, "timeoutMs": HOUR_MS}
        held = {"callback": {"url": self.hooks.hold("hang")}}
        self.new("running-callback", **held, **one)
        events.reached("running-callback", "DISPATCHING")
        self.new("due-limit", **held, **one)
        long = {"delayMs": 0, "leaseMs": HOUR_MS, "timeoutMs": 2 * HOUR_MS}
        self.new("running-task", task={"name": "hold", "queue": "slow"}, **long)
        self.new("running-entity", entity={"type": "Account", "id": "9", "message": "hold"}, **long)
        for id in ("running-task", "running-entity"):
            events.reached(id, "DISPATCHING")
        self.new(
            "due-entity",
            entity={"type": "Account", "id": "9", "message": "deposit"},
            payload=[[9], {}],
            delayMs=0,
        )
        for id in ("due-entity", "due-limit"):
            events.reached(id, "DUE")

    def answers(self) -> dict[str, Any]:
        """Everything that the server shows of its folder."""
        intents = self.ask("GET", "/v1/intents?limit=500")
        assert intents["nextCursor"] is None
        shown = {intent["intentId"]: intent for intent in intents["items"]}
        return {
            "intents": shown,
            "histories": {id: self.ask("GET", f"/v1/intents/{id}/history")["entries"] for id in shown},
            "schedules": self.ask("GET", "/v1/schedules")["schedules"],
            "groups": [self.ask("GET", f"/v1/groups/{id}") for id in ("group-running", "group-open")],
            "lanes": self.ask("GET", "/v1/admin/lanes")["lanes"],
        }


def _token(data: Path, *options: str) -> str:
    command = [sys.executable, "-m", "duetime", "token", "new", "--data", str(data), *options]
    made = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    return made.stdout.strip()


def write(data: Path) -> dict[str, Any]:
    """Fill this folder and kill its server; returns what it answered last."""
    admin = _token(data, "--role", "admin", "--name", "ops")
    shop = _token(data, "--role", "submit", "--name", "shop", "--rate", "100/s", "--burst", "10")
    options = ("--token", admin, "--name", "golden-worker")
    with Hooks(ADDRESS) as hooks:
        with ServerProcess(data) as server:
            writer = Writer(server, hooks, admin)
            with (
                WorkerProcess(server, target="tests.golden.write_folder:app", options=options),
                writer.events() as events,
            ):
                writer.scheduled()
                writer.finished(events)
                writer.waiting(events)
                writer.keys()
                writer.schedules()
            assert server.stop() == 0  # with a checkpoint
        with ServerProcess(data, store__checkpoint_ms=HOUR_MS) as server:
            writer = Writer(server, hooks, admin)
            with WorkerProcess(server, target="tests.golden.write_folder:app", options=options):
                with writer.events() as events:
                    writer.tail(events)
                answers = writer.answers()
                answers["at"] = now_s(0)
                server.kill()
    return answers | {"tokens": {"ops": admin, "shop": shop}}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    target = FOLDER / f"{arguments[0]}.tar.xz"
    if target.exists():
        sys.stderr.write(f"{target} exists; a golden folder never changes.\n")
        return 1
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary) / "data"
        answers = Path(temporary) / "answers.json"
        answers.write_text(json.dumps(write(data), indent=1, sort_keys=True), "utf-8")
        with tarfile.open(target, "w:xz") as archive:
            for path in (data, answers):
                archive.add(path, path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
