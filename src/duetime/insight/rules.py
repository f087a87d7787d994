"""The rules of the health check: when each problem begins and ends, what it means, what to do.

A rule reads `Signs` and returns the problems by subject (a tier, a lane, a host, or none). A problem begins
when `on` has returned the subject for `after_ms`, and ends when `still` has not returned it for `until_ms`.
`still` is the weaker condition, so that a problem does not flicker around a threshold.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from duetime.duration_text import span
from duetime.limits import LOG_HISTORY_BYTES, MINUTE_MS, SECOND_MS
from duetime.timefmt import plural, size

# Severities. A note does not change the status: it was requested (a pause), or it concerns one host.
NOTE, DEGRADED, DOWN = "NOTE", "DEGRADED", "DOWN"

# With fewer deliveries than this, a percentile is not used.
_ENOUGH = 5


class TierSign(Struct):
    """Lateness of one tier in the last minutes."""

    tier: str
    bound_ms: int
    p50_ms: float | None = None
    p99_ms: float | None = None
    count: int = 0
    refuses: bool = False


class Signs(Struct, kw_only=True):
    """The values that the rules check."""

    now_ms: int
    failure: str | None = None
    not_ready: tuple[str, ...] = ()
    """Reasons why it does not accept requests, as short codes."""
    tiers: tuple[TierSign, ...] = ()
    scheduled: int = 0
    due: int = 0
    waiting: int = 0
    """Due intents that wait for a permit or a worker; not those that wait for a limit or a paused queue."""
    waiting_before: int = 0
    """The same number a minute ago."""
    held_back: int = 0
    """Delivered but not called yet."""
    held_since_ms: int | None = None
    """Due time of the oldest of those."""
    running: int = 0
    oldest_due_ms: int | None = None
    """Due time of the oldest intent that could be delivered."""
    next_ms: int | None = None
    dead_hour: int = 0
    dead_minutes: int = 0
    """Dead letters in the last five minutes."""
    sync_p99_ms: float | None = None
    last_sync_ms: int = 0
    checkpoint_lag_bytes: int = 0
    disk_free_bytes: int | None = None
    disk_reserve_bytes: int = 0
    memory_bytes: int = 0
    memory_max_bytes: int = 0
    breakers: tuple[str, ...] = ()
    """Hosts that the circuit breaker has paused."""
    doors: dict[str, str] = {}
    """Listeners that refuse new connections, with the reason."""
    tokens: str = ""
    """The reason why the file of tokens cannot be read, if any."""
    paused: tuple[str, ...] = ()
    model: str = ""
    """The problem of the duration model, if a lane uses it."""
    unserved: dict[str, int] = {}
    """Lanes with ready work and no worker."""
    idle: dict[str, str] = {}
    """Connected workers that are idle while work waits for them."""


Found = dict[str, str]
"""The problems by subject, with numbers."""
Look = Callable[[Signs], Found]


class HealthRule(Struct, frozen=True):
    """One rule."""

    code: str
    severity: str
    on: Look
    still: Look
    meaning: str
    advice: str
    after_ms: int = 0
    until_ms: int = 0
    state: str = "not well"
    """The state of the subject, for a sentence that does not name the subject."""


def _late(share: float) -> Look:
    return lambda signs: {
        each.tier: f"{each.tier} is {each.p99_ms:.0f} ms late at p99, its bound is {each.bound_ms} ms"
        for each in signs.tiers
        if each.p99_ms is not None and each.count >= _ENOUGH and each.p99_ms > share * each.bound_ms
    }


def _refusing(signs: Signs) -> Found:
    return {each.tier: f"{each.tier} refuses new work" for each in signs.tiers if each.refuses}


def _surge(least: int, factor: int) -> Look:
    def look(signs: Signs) -> Found:
        usual = (
            signs.dead_hour - signs.dead_minutes
        ) / 11  # the mean per five minutes in the rest of the hour
        if signs.dead_minutes < max(least, factor * usual):
            return {}
        return {"": f"{plural(signs.dead_minutes, 'dead letter')} in five minutes"}

    return look


def _doors(signs: Signs) -> Found:
    return signs.doors


def _tokens(signs: Signs) -> Found:
    return {"": "tokens.json cannot be read"} if signs.tokens else {}


def _disk(times: float, least: float = 0) -> Look:
    def look(signs: Signs) -> Found:
        free, reserve = signs.disk_free_bytes, signs.disk_reserve_bytes
        if free is None or not least * reserve <= free < times * reserve:
            return {}
        return {"": f"{size(free)} are free"}

    return look


def _sync(limit_ms: float) -> Look:
    def look(signs: Signs) -> Found:
        p99_ms = signs.sync_p99_ms
        return (
            {"": f"a sync takes {span(round(p99_ms))} at p99"}
            if p99_ms is not None and p99_ms > limit_ms
            else {}
        )

    return look


def _lag(limit: int) -> Look:
    def look(signs: Signs) -> Found:
        lag = signs.checkpoint_lag_bytes
        return {"": f"a restart would read {size(lag)} of the log"} if lag > limit else {}

    return look


def _memory(share: float) -> Look:
    def look(signs: Signs) -> Found:
        if signs.memory_bytes <= share * signs.memory_max_bytes or not signs.memory_max_bytes:
            return {}
        return {"": f"{size(signs.memory_bytes)} of {size(signs.memory_max_bytes)} are in use"}

    return look


def _growing(least: int, factor: float) -> Look:
    def look(signs: Signs) -> Found:
        grown = signs.waiting - signs.waiting_before
        if grown < least or signs.waiting < factor * signs.waiting_before:
            return {}
        return {"": f"{plural(signs.waiting, 'intent')} are due, {grown:,} more than a minute ago"}

    return look


def _backed(least: int) -> Look:
    return lambda signs: (
        {"": f"{plural(signs.waiting, 'intent')} {'is' if signs.waiting == 1 else 'are'} due"}
        if signs.waiting >= least
        else {}
    )


def _failed(signs: Signs) -> Found:
    return {} if signs.failure is None else {"": signs.failure}


def _not_ready(signs: Signs) -> Found:
    return {code: f"not ready: {code}" for code in signs.not_ready}


def _breakers(signs: Signs) -> Found:
    return {host: f"{host} is paused by the circuit breaker" for host in signs.breakers}


def _paused(signs: Signs) -> Found:
    return {lane: f"{lane} is paused" for lane in signs.paused}


def _model(signs: Signs) -> Found:
    return {"": signs.model} if signs.model else {}


def _idle(signs: Signs) -> Found:
    return signs.idle


def _unserved(signs: Signs) -> Found:
    return {
        lane: f"{plural(ready, 'intent')} of {lane} {'waits' if ready == 1 else 'wait'}"
        f" and no worker takes {'it' if ready == 1 else 'them'}"
        for lane, ready in signs.unserved.items()
    }


RULES: tuple[HealthRule, ...] = (
    HealthRule(
        "ENGINE_FAILED", DOWN, _failed, _failed,
        "The engine stopped itself so that it serves no wrong data. Acknowledged intents are safe.",
        "Find and fix the cause, then restart the server; `duetime log verify` checks for damage.",
    ),
    HealthRule(
        "NOT_READY", DOWN, _not_ready, _not_ready,
        "The engine does not accept requests: it is starting or stopping.",
        "Wait: recovery replays the log after the last checkpoint. `/health/ready` shows when it is done.",
    ),
    HealthRule(
        "LATE", DEGRADED, _late(1.0), _late(0.8),
        "Intents of this tier start, or are called, later than its bound, not counting waits for limits.",
        "Give the tier more permits or the queue more workers, make deliveries shorter, or use a lower tier.",
        after_ms=5 * SECOND_MS, until_ms=30 * SECOND_MS,
    ),
    HealthRule(
        "REFUSING", DEGRADED, _refusing, _refusing,
        "New work of this tier is refused with 429, because the tier exceeds its lateness bound.",
        "Clients retry by themselves. Give the tier more permits, or send less work.",
        until_ms=10 * SECOND_MS,
    ),
    HealthRule(
        "DEAD_LETTERS", DEGRADED, _surge(10, 3), _surge(5, 2),
        "Many more intents than usual end as dead letters.",
        "Check their errors (`duetime dead-letters`), fix the cause, then revive them.",
        until_ms=MINUTE_MS,
    ),
    HealthRule(
        "DISK_FULL", DEGRADED, _disk(1.0), _disk(1.2),
        "The disk is full: new work is refused, accepted work continues.",
        "Free space on the disk of the data folder; the engine then continues by itself.",
    ),
    HealthRule(
        "DISK_LOW", DEGRADED, _disk(4.0, 1.0), _disk(5.0, 1.2),
        "The disk of the data folder is nearly full; a full disk makes the server refuse new work.",
        "Free space, or reduce `intents.retention_ms` or `log.history_bytes`.",
        after_ms=10 * SECOND_MS, until_ms=30 * SECOND_MS,
    ),
    HealthRule(
        "FILES_SHORT", DEGRADED, _doors, _doors,
        "Open connections have reached the file limit of this process; new ones are closed immediately. "
        "Existing connections and the engine continue.",
        "Find the clients with many connections. If they are yours, raise the open file limit (ulimit -n).",
    ),
    HealthRule(
        "TOKENS_UNREADABLE", DEGRADED, _tokens, _tokens,
        "tokens.json cannot be read. The tokens known before stay valid; changes have no effect.",
        "The server's log shows the reason. Restore the file, or delete it and create new tokens.",
    ),
    HealthRule(
        "SYNC_SLOW", DEGRADED, _sync(250.0), _sync(100.0),
        "Disk syncs are slow; DURABLE requests wait for them.",
        "Find other heavy writers on the disk, or use a faster disk.",
        after_ms=10 * SECOND_MS, until_ms=30 * SECOND_MS,
    ),
    HealthRule(
        "CHECKPOINT_LAG", DEGRADED, _lag(LOG_HISTORY_BYTES), _lag(LOG_HISTORY_BYTES // 2),
        "The store is far behind the log: a restart takes long, and unwritten changes use memory.",
        "The disk may be slow or full; reduce the load so that the store can catch up.",
        after_ms=30 * SECOND_MS, until_ms=10 * SECOND_MS,
    ),
    HealthRule(
        "MEMORY_HIGH", DEGRADED, _memory(0.85), _memory(0.75),
        "The process uses most of its available memory.",
        "Memory holds intents that run or are due soon: reduce `store.horizon_ms`, or add memory.",
        after_ms=30 * SECOND_MS, until_ms=30 * SECOND_MS,
    ),
    HealthRule(
        "BACKLOG_GROWING", DEGRADED, _growing(1_000, 1.2), _backed(500),
        "More intents become due than are processed.",
        "Add workers or permits; `duetime timeline` shows upcoming intents.",
        after_ms=30 * SECOND_MS, until_ms=10 * SECOND_MS,
    ),
    HealthRule(
        "NO_CONSUMER", DEGRADED, _unserved, _unserved,
        "Intents are due, but no worker or subscriber takes them. They wait until their deadline.",
        "Start a worker for this queue, or a subscriber of this stream.",
        after_ms=10 * SECOND_MS, until_ms=2 * SECOND_MS,
    ),
    HealthRule(
        "WORKER_IDLE", DEGRADED, _idle, _idle,
        "A worker is connected but does not take the work that waits for it.",
        "Check its process: is it stopped, swapping, or blocked by a function? Restart it if in doubt; "
        "its deliveries go to other workers when their leases end.",
        after_ms=5 * SECOND_MS, until_ms=2 * SECOND_MS,
    ),
    HealthRule(
        "BREAKER_OPEN", NOTE, _breakers, _breakers,
        "A host or endpoint failed many times in a row; its callbacks wait and are retried.",
        "Check the host; Duetime probes it automatically.",
        state="paused by the circuit breaker",
    ),
    HealthRule(
        "NO_MODEL", NOTE, _model, _model,
        "Predicted durations come from the sketch of each function, not from the model.",
        "No intent waits for the model. See `duetime predictions`; the extra `ml` installs its packages.",
    ),
    HealthRule(
        "PAUSED", NOTE, _paused, _paused,
        "This lane is paused; its intents wait.",
        "Resume it: `duetime queues resume`.",
        state="paused",
    ),
)  # fmt: skip
