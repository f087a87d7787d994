"""`duetime chronoscope`: the engine from inside: tiers, permits, lateness, lanes, log and store."""

from __future__ import annotations

from typing import Any

import msgspec

from duetime.cli import output, render, server

COLUMNS = (
    "tier", "pending", "ready", "running", "permits", "borrowed", "lent",
    "p50 ms", "p95 ms", "p99 ms", "bound ms", "backpressure",
)  # fmt: skip


def chronoscope(
    as_json: output.JsonFlag = False,
    url: server.UrlOption = None,
    token: server.TokenOption = None,
) -> None:
    """Look into the engine: how punctual each tier is, what it has to do, and with what.

    Examples:

      duetime chronoscope --json
    """
    answer = server.sent(url, token, lambda client: client.chronoscope())
    if as_json:
        output.json(msgspec.Raw(answer))
        return
    found: dict[str, Any] = msgspec.json.decode(answer)
    output.table(COLUMNS, [tier_row(tier) for tier in found.pop("tiers", [])], right=COLUMNS[1:-1])
    output.text("")
    render.document(found)


def tier_row(tier: dict[str, Any]) -> list[str]:
    """One tier as a row under `COLUMNS`."""
    permits, late = tier.get("permits", {}), tier.get("lateness", {})
    used = permits.get("max", 0) - permits.get("available", 0)
    numbers = [tier.get(name, 0) for name in ("pending", "ready", "running")]
    lates = [late.get(name) for name in ("p50Ms", "p95Ms", "p99Ms", "boundMs")]
    return [
        tier["tier"],
        *(render.cell(number) for number in numbers),
        f"{used}/{permits.get('max', 0)}",
        render.cell(permits.get("borrowed", 0)),
        render.cell(permits.get("lent", 0)),
        *(render.cell(value) for value in lates),
        tier.get("backpressure", ""),
    ]


def is_late(tier: dict[str, Any]) -> bool:
    """Whether a tier's p99 is beyond its bound."""
    late = tier.get("lateness", {})
    p99 = late.get("p99Ms")
    return p99 is not None and p99 > late.get("boundMs", 0)
