"""Examples for the OpenAPI document: bodies that can be sent unchanged."""

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

# By operation: a name, a summary, and the body.
BODIES: Final[Mapping[str, Mapping[str, tuple[str, Any]]]] = {
    "createIntent": {
        "callback": ("Call a URL in a minute", _CALLBACK),
        "task": ("Run a function on a worker", _TASK),
        "entity": ("Send a message to one entity", _ENTITY),
        "stream": ("Deliver it to a subscriber at a given time", _STREAM),
        "slo": (
            "Set a lateness objective; Duetime chooses the tier",
            {**_STREAM, "slo": {"maxTardinessMs": 1_000}},
        ),
    },
    "createIntents": {"two": ("Two intents in one append", [_CALLBACK, _TASK])},
    "patchIntent": {"later": ("Move it", {"executeAt": "2030-02-28T09:00:00Z"})},
    "cancelIntent": {"nothing": ("All fields are optional", {})},
    "fireIntentNow": {"nothing": ("All fields are optional", {})},
    "reviveIntent": {
        "again": ("As it was", {}),
        "elsewhere": ("To another place", {"callback": {"url": "http://localhost:9001/hook"}}),
    },
}
