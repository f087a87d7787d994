"""Names of fields: long and camelCase on the network, short in Python and on the command line."""

from __future__ import annotations

from typing import Final

# The names in Python and on the command line. All others only lose `_ms`, because durations have units there.
_SHORT: Final = {
    "intent_id": "id",
    "execute_at": "at",
    "precision_tier": "tier",
    "ack_level": "ack",
    "redelivery": "retry",
    "idempotency_key": "key",
}


def camel(name: str) -> str:
    """The name in JSON: `execute_at` is `executeAt`."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def short(name: str) -> str:
    """The name of the option in Python: `execute_at` is `at`, `lease_ms` is `lease`."""
    return _SHORT.get(name, name.removesuffix("_ms"))


def flag(name: str) -> str:
    """The name of the option on the command line: `lease_ms` is `--lease`."""
    return "--in" if name == "delay_ms" else f"--{short(name).replace('_', '-')}"
