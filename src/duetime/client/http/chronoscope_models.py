"""Responses about the server itself: chronoscope, timeline, functions, health, log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from duetime.wire.shapes import Out


class Permits(Out, frozen=True):
    """The permits of a tier: free, total, borrowed and lent."""

    available: int = 0
    max: int = 0
    borrowed: int = 0
    lent: int = 0


class Lateness(Out, frozen=True):
    """Lateness of the first deliveries in the last minutes; None if there were none."""

    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    bound_ms: int = 0
    count: int = 0


class Tier(Out, frozen=True):
    """One tier."""

    tier: str
    pending: int = 0
    ready: int = 0
    running: int = 0
    permits: Permits = Permits()
    backpressure: str = ""
    load: float = 0.0
    lateness: Lateness = Lateness()
    borrows: int = 0


class Chronoscope(Out, frozen=True):
    """Engine internals."""

    tiers: list[Tier]
    counts: dict[str, int] = {}
    cohorts: int = 0
    borrows: int = 0
    borrowed_now: int = 0
    lanes: list[dict[str, Any]] = []
    more_lanes: int = 0
    entities: int = 0
    epoch: int = 0
    log: dict[str, Any] = {}
    store: dict[str, Any] = {}


class Slot(Out, frozen=True):
    """One time slot with its upcoming intents."""

    at: str
    count: int = 0
    by_tier: dict[str, int] = {}
    by_queue: dict[str, int] = {}
    capacity: int = 0
    predicted_lateness_ms: float = 0.0


class Peak(Out, frozen=True):
    """The busiest slot."""

    at: str
    count: int = 0
    per_second: float = 0.0


class Timeline(Out, frozen=True):
    """The upcoming intents, and whether they will be on time."""

    slots: list[Slot]
    total: int = 0
    slot_ms: int = 0
    peak: Peak | None = None
    capacity: list[dict[str, Any]] = []
    predicted_lateness_ms: dict[str, float] = {}
    risk: str = ""
    narrative: str = ""


class Function(Out, frozen=True):
    """A function of the workers, with the JSON Schema of its payload."""

    name: str
    queue: str | None = None
    entity: str | None = None
    signature: str = ""
    parameters: Any = None
    workers: list[str] = []


class FunctionList(Out, frozen=True):
    functions: list[Function]


class Anomaly(Out, frozen=True):
    """A problem, and advice."""

    code: str
    severity: str = ""
    subject: str = ""
    since: datetime | None = None
    detail: str = ""
    meaning: str = ""
    advice: str = ""


class Health(Out, frozen=True):
    """Whether the server is on time."""

    status: str
    narrative: str = ""
    vitals: dict[str, Any] = {}
    anomalies: list[Anomaly] = []


class Segment(Out, frozen=True):
    """One segment of the log."""

    file: str
    bytes: int
    first_position: int = 0
    end_position: int = 0
    sealed: bool = False
    begins_at: str | None = None
    epoch: int | None = None
