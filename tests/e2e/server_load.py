"""Clients of a server that is killed: each writes down what it was promised before it asks for more."""

from __future__ import annotations

import http.client
import json
import threading
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from duetime.clock import SystemClock
from tests.e2e.hook import Hook

TIERS = ("ULTRA", "FAST", "HIGH", "STANDARD", "ECONOMY")
# More attempts than there are kills, soon after each other.
PATIENT = {"maxAttempts": 1000, "initialDelayMs": 5, "maxDelayMs": 20}
BROKEN = (OSError, http.client.HTTPException)


class Asked(NamedTuple):
    """A request; it is repeated as it is when its answer was not heard."""

    method: str
    path: str
    body: Any
    request: str
    marks: list[str]


class Promises:
    """What the server has said so far."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        """By mark, of everything that was ever asked for."""
        self.ids: dict[str, str] = {}
        """By mark, of everything that was acknowledged."""
        self.acks: dict[str, str] = {}
        self.not_before_ms: dict[str, int] = {}
        self.refused: set[str] = set()
        self.cancelled: set[str] = set()
        self.in_doubt: list[Asked] = []
        self.doubts = 0
        self.wrong: list[str] = []
        self.heard = 0
        """Acknowledged intents of this round."""
        self.news = threading.Condition()

    def answered(self, asked: Asked, status: int, body: Any) -> None:
        with self.news:
            if status == 429:
                self.refused.update(asked.marks)
            elif asked.path == "/v1/intents/batch" and status == 200:
                for mark, item in zip(asked.marks, body["items"], strict=True):
                    self._one(mark, item["status"], item.get("intent"), item)
            elif asked.method == "POST" and asked.path == "/v1/intents":
                self._one(asked.marks[0], status, body, body)
            elif asked.path.endswith("/cancel") and status == 200:
                if body["delivery"] == 0:
                    self.cancelled.add(asked.marks[0])
            elif asked.method == "PATCH" and status == 200:
                self.not_before_ms[asked.marks[0]] = round(asked.body["executeAt"] * 1000)
            elif status != 422:  # a change that came too late
                self.wrong.append(f"{asked.method} {asked.path}: {status} {body}")
            self.news.notify_all()

    def _one(self, mark: str, status: int, intent: Any, answer: Any) -> None:
        if status == 429:
            self.refused.add(mark)
        elif status in (200, 201):
            self.ids[mark] = intent["intentId"]
            self.acks[mark] = intent["ackLevel"]
            self.heard += 1
        else:
            self.wrong.append(f"{mark}: {status} {answer}")

    def lost_hearing(self, asked: Asked) -> None:
        with self.news:
            self.in_doubt.append(asked)
            self.doubts += 1


class Client:
    """One connection that asks until it breaks."""

    def __init__(self, url: str, hook: Hook, promises: Promises, name: str) -> None:
        place = urlsplit(url)
        self._connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
        self._hook = hook
        self._promises = promises
        self._name = name
        self._random = Random(name)
        self._clock = SystemClock()
        self._count = 0

    def run(self) -> None:
        """Hand in work until the server is gone."""
        while self.ask(self._next()):
            mark, id, delay_ms = self._last
            kind = self._promises.kinds[mark]
            if id and kind in ("cancel", "patch") and not self._change(mark, id, kind, delay_ms):
                break
        self._connection.close()

    def repeat(self) -> None:
        """What was not heard is asked again, by its old name."""
        while self._promises.in_doubt:
            asked = self._promises.in_doubt.pop()
            assert self.ask(asked), "nobody was killed this time"

    def close(self) -> None:
        self._connection.close()

    def ask(self, asked: Asked) -> bool:
        """Whether an answer came."""
        headers = {"content-type": "application/json", "x-duetime-request-id": asked.request}
        try:
            self._connection.request(asked.method, asked.path, json.dumps(asked.body), headers)
            answer = self._connection.getresponse()
            body = json.loads(answer.read())
        except (*BROKEN, ValueError):
            self._promises.lost_hearing(asked)
            return False
        self._promises.answered(asked, answer.status, body)
        self._last = (asked.marks[0], self._promises.ids.get(asked.marks[0], ""), 0)
        return True

    def _next(self) -> Asked:
        kinds = ("plain", "slow", "flaky", "most", "many", "cancel", "patch", "batch")
        kind = self._random.choice(kinds)
        if kind == "batch":
            news = [self._new(self._random.choice(("plain", "many", "most"))) for _ in range(20)]
            return Asked("POST", "/v1/intents/batch", news, self._name_it(), [_mark(new) for new in news])
        new = self._new(kind)
        return Asked("POST", "/v1/intents", new, self._name_it(), [_mark(new)])

    def _new(self, kind: str) -> dict[str, Any]:
        random, mark = self._random, self._name_it()
        far = kind in ("cancel", "patch")
        at_ms = self._clock.now_ms() + (1_500 if far else random.choice((0, 0, 20, 300, 1_500)))
        self._promises.kinds[mark] = kind
        self._promises.not_before_ms[mark] = at_ms
        path = kind if kind in ("slow", "flaky", "many") else random.choice(("plain", "slow"))
        new: dict[str, Any] = {
            "executeAt": at_ms / 1000,
            "precisionTier": random.choice(TIERS),
            "ackLevel": random.choice(("DURABLE", "ASYNC")),
            "callback": {"url": self._hook.url(path), "batch": kind == "many"},
            "redelivery": PATIENT,
            "payload": {"mark": mark},
        }
        if kind == "most":
            new["guarantee"] = "AT_MOST_ONCE"
        if random.random() < 0.3:
            new["intentId"] = f"own-{mark}"
        if random.random() < 0.3:
            new |= {"idempotencyKey": f"key-{mark}", "onDuplicate": "return"}
        return new

    def _change(self, mark: str, id: str, kind: str, delay_ms: int) -> bool:
        if kind == "cancel":
            return self.ask(Asked("POST", f"/v1/intents/{id}/cancel", {}, self._name_it(), [mark]))
        later = {"executeAt": (self._promises.not_before_ms[mark] + 500) / 1000}
        return self.ask(Asked("PATCH", f"/v1/intents/{id}", later, self._name_it(), [mark]))

    def _name_it(self) -> str:
        self._count += 1
        return f"{self._name}.{self._count}"


def _mark(new: dict[str, Any]) -> str:
    return str(new["payload"]["mark"])
