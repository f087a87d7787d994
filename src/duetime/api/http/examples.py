"""Examples for the OpenAPI document: bodies that work when they are sent as they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_CALLBACK: Final = {
    "delayMs": 60_000,
    "callback": {"url": "http://localhost:9000/hook"},
    "payload": {"order": 17},
    "tags": {"team": "billing"},
}
_TASK: Final = {"delayMs": 5_000, "task": {"name": "send_report", "queue": "reports"}, "payload": {"day": 3}}
_ENTITY: Final = {"delayMs": 0, "entity": {"type": "cart", "id": "17", "message": "remind"}}
_STREAM: Final = {"executeAt": "2030-01-31T09:00:00+01:00", "stream": {"name": "orders"}, "priority": "HIGH"}

# By operation: a name, what it shows, and the body.
BODIES: Final[Mapping[str, Mapping[str, tuple[str, Any]]]] = {
    "createIntent": {
        "callback": ("Call a URL in a minute", _CALLBACK),
        "task": ("Have a worker run a function", _TASK),
        "entity": ("Send a message to one entity", _ENTITY),
        "stream": ("Hand it to a subscriber at a moment", _STREAM),
        "slo": (
            "Say how late it may be, and let Duetime choose the tier",
            {**_STREAM, "slo": {"maxTardinessMs": 1_000}},
        ),
    },
    "createIntents": {"two": ("Two intents in one append", [_CALLBACK, _TASK])},
    "patchIntent": {"later": ("Move it", {"executeAt": "2030-02-28T09:00:00Z"})},
    "cancelIntent": {"nothing": ("Nothing needs to be said", {})},
    "fireIntentNow": {"nothing": ("Nothing needs to be said", {})},
    "reviveIntent": {
        "again": ("As it was", {}),
        "elsewhere": ("To another place", {"callback": {"url": "http://localhost:9001/hook"}}),
    },
}
