"""`duetime chronoscope`: engine internals: tiers, permits, lateness, lanes, log and store."""

from __future__ import annotations

import msgspec

from duetime.cli.args import server
from duetime.cli.ui import output, render
from duetime.json_types import Json

# The columns of a tier, and those that a narrow terminal does not show.
COLUMNS = (
    "tier", "pending", "ready", "running", "permits", "borrowed", "lent",
    "p50 ms", "p95 ms", "p99 ms", "bound ms", "backpressure",
)  # fmt: skip
LESS = ("borrowed", "lent", "p95 ms")
WIDE = 104


@server.asks
def chronoscope(ask: server.Ask) -> None:
    """Show engine internals: lateness, load and permits of each tier, lanes, log and store.

    Examples:

      duetime chronoscope --json
    """
    answer = ask.sent(lambda client: client.chronoscope())
    if ask.as_json:
        output.json(msgspec.Raw(answer))
        return
    found: Json = msgspec.json.decode(answer)
    show_tiers(found.pop("tiers", []))
    output.text("")
    render.document(found)


def show_tiers(tiers: list[Json]) -> None:
    """A table of them."""
    columns = columns_for(output.width())
    titles = titles_of(columns)
    output.table(titles, [tier_row(tier, columns) for tier in tiers], right=titles[1:-1])


def columns_for(width: int) -> tuple[str, ...]:
    """The columns that fit."""
    return COLUMNS if width >= WIDE else tuple(name for name in COLUMNS if name not in LESS)


def titles_of(columns: tuple[str, ...]) -> tuple[str, ...]:
    """The headings; with units if they fit."""
    return columns if columns == COLUMNS else tuple(name.removesuffix(" ms") for name in columns)


def tier_row(tier: Json, columns: tuple[str, ...] = COLUMNS) -> list[str]:
    """One tier as a row with these columns."""
    permits, late = tier.get("permits", {}), tier.get("lateness", {})
    used = permits.get("max", 0) - permits.get("available", 0)
    cells: dict[str, object] = {
        "tier": tier["tier"],
        "pending": tier.get("pending", 0),
        "ready": tier.get("ready", 0),
        "running": tier.get("running", 0),
        "permits": f"{used}/{permits.get('max', 0)}",
        "borrowed": permits.get("borrowed", 0),
        "lent": permits.get("lent", 0),
        "p50 ms": late.get("p50Ms"),
        "p95 ms": late.get("p95Ms"),
        "p99 ms": late.get("p99Ms"),
        "bound ms": late.get("boundMs"),
        "backpressure": tier.get("backpressure", ""),
    }
    return [render.cell(cells[name]) for name in columns]


def is_late(tier: Json) -> bool:
    """Whether the p99 of a tier exceeds its bound."""
    late = tier.get("lateness", {})
    p99 = late.get("p99Ms")
    return p99 is not None and p99 > late.get("boundMs", 0)
