"""The health check: is the engine on time? Reads the engine on request and remembers since when a problem
exists.

An idle server is healthy: no problem appears because nothing happens. The clock is a parameter, for tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from duetime.clock import Clock
from duetime.duration_text import span
from duetime.engine.engine import Engine
from duetime.engine.reads import gauges as inside
from duetime.engine.reads.meter import Meter
from duetime.insight import machine
from duetime.insight.chronoscope import look
from duetime.insight.rules import DOWN, NOTE, RULES, Found, HealthRule, Signs, TierSign
from duetime.insight.workers import idle, unserved
from duetime.limits import HOUR_MS, MINUTE_MS, TIER_NAMES, TIER_WINDOW_MS
from duetime.protocol.intent import DISPATCHING, DUE, SCHEDULED
from duetime.timefmt import plural
from duetime.wire.health import Anomaly, Health, Readiness, Vital, Vitals
from duetime.wire.shapes import written, written_or_none

UP, DEGRADED = "UP", "DEGRADED"


class _Watch(Struct):
    """The state of one subject of a rule."""

    bad_since_ms: int
    good_since_ms: int | None = None
    shown: bool = False
    detail: str = ""


class Narrator:
    """Checks one engine. `breakers` returns the hosts that are paused now, `doors` the listeners that refuse
    new connections, with the reason, and `tokens` the reason why the file of tokens cannot be read."""

    def __init__(
        self,
        clock: Clock,
        meter: Meter,
        breakers: Callable[[], Iterable[str]] = tuple,
        doors: Callable[[], dict[str, str]] = dict,
        tokens: Callable[[], str] = str,
    ) -> None:
        self._clock = clock
        self._meter = meter
        self._breakers = breakers
        self._doors = doors
        self._tokens = tokens
        self._engine: Engine | None = None
        self._watches: dict[tuple[str, str], _Watch] = {}

    def follow(self, engine: Engine) -> None:
        """Set the engine. It need not be started yet."""
        self._engine = engine

    def ready(self) -> Readiness:
        """Whether requests are accepted; if not, the reason."""
        reasons = _not_ready(self._engine)
        return Readiness(ready=not reasons, reasons=list(reasons))

    def health(self, *, deep: bool = False, named: bool = False) -> Health:
        """The health now. Addresses of receivers are shown only to callers that may read intents."""
        found = self.judge(self.signs(), named=named)
        if deep and self._engine is not None and not _not_ready(self._engine):
            return replace(found, tiers=look(self._engine, self._meter).tiers)
        return found

    # Rules.

    def judge(self, signs: Signs, *, named: bool = True) -> Health:
        """The problems in these signs, given the earlier ones."""
        anomalies = []
        for rule in RULES:
            found = self._apply(rule, signs)
            anomalies += found if named else _unnamed(rule, found)
        grave = [each for each in anomalies if each.severity != NOTE]
        if any(each.severity == DOWN for each in grave):
            status = DOWN
        else:
            status = DEGRADED if grave else UP
        return Health(
            status=status,
            narrative=_narrative(status, signs, anomalies),
            vitals=_vitals(signs),
            anomalies=anomalies,
        )

    def _apply(self, rule: HealthRule, signs: Signs) -> list[Anomaly]:
        now_ms = signs.now_ms
        on, still = rule.on(signs), rule.still(signs)
        for subject in on:
            self._watches.setdefault((rule.code, subject), _Watch(now_ms))
        shown = []
        for code, subject in [key for key in self._watches if key[0] == rule.code]:
            watch = self._watches[code, subject]
            if self._goes_on(rule, watch, subject, on, still, now_ms):
                if watch.shown:
                    shown.append(_anomaly(rule, subject, watch))
            else:
                del self._watches[code, subject]
        return shown

    def _goes_on(
        self, rule: HealthRule, watch: _Watch, subject: str, on: Found, still: Found, now_ms: int
    ) -> bool:
        """Whether to keep this state. Records when it becomes an anomaly."""
        bad = subject in on if not watch.shown else subject in on or subject in still
        if bad:
            watch.good_since_ms = None
            watch.detail = on.get(subject) or still.get(subject, "")
            watch.shown = watch.shown or now_ms - watch.bad_since_ms >= rule.after_ms
            return True
        if not watch.shown:
            return False  # it ended before it counted as a problem
        if watch.good_since_ms is None:
            watch.good_since_ms = now_ms
        return now_ms - watch.good_since_ms < rule.until_ms

    # Reading the engine.

    def signs(self) -> Signs:
        """The signs now."""
        signs = Signs(
            now_ms=self._clock.now_ms(),
            not_ready=_not_ready(self._engine),
            memory_bytes=machine.memory_bytes(),
            memory_max_bytes=machine.memory_max_bytes(),
            breakers=tuple(self._breakers()),
            doors=self._doors(),
            tokens=self._tokens(),
        )
        if self._engine is not None:
            failure = inside.failure(self._engine)
            if failure is not None:
                signs.failure, signs.not_ready = str(failure), ()
            elif not signs.not_ready:
                _look(self._engine, self._meter, signs)
        return signs


def _not_ready(engine: Engine | None) -> tuple[str, ...]:
    if engine is None:
        return ("STARTING",)
    if inside.failure(engine) is not None:
        return ("ENGINE_FAILED",)
    if inside.is_ready(engine):
        return ()
    return ("CLOSING",) if inside.is_closing(engine) else ("RECOVERING",)


def _look(engine: Engine, meter: Meter, signs: Signs) -> None:
    """Add the signs of a running engine."""
    seen, now_ms = inside.gauges(engine), signs.now_ms
    tiers = []
    for number, tier in enumerate(seen.tiers):
        recent = meter.lateness(number, now_ms)
        p50_ms, p99_ms = recent.quantile(0.5), recent.quantile(0.99)
        tiers.append(TierSign(tier.tier, TIER_WINDOW_MS[number], p50_ms, p99_ms, recent.count, tier.refuses))
    signs.tiers = tuple(tiers)
    signs.scheduled, signs.due = seen.counts[SCHEDULED], seen.counts[DUE]
    signs.running = seen.counts[DISPATCHING]
    signs.waiting, signs.waiting_before = meter.waiting(), meter.waiting_at(now_ms - MINUTE_MS)
    held = meter.held_back()
    signs.held_back = len(held)
    signs.held_since_ms = min((since_ms for _, since_ms in held), default=None)
    signs.oldest_due_ms = inside.oldest_due_ms(engine)
    signs.next_ms = seen.next_ms
    signs.dead_hour = meter.dead_since(now_ms - HOUR_MS)
    signs.dead_minutes = meter.dead_since(now_ms - 5 * MINUTE_MS)
    sync_s = meter.sync_s.recent(now_ms).quantile(0.99)
    signs.sync_p99_ms = None if sync_s is None else sync_s * 1000
    signs.last_sync_ms = meter.last_sync_ms
    signs.checkpoint_lag_bytes = seen.store.checkpoint_lag_bytes
    signs.disk_free_bytes = seen.log.free_bytes
    signs.disk_reserve_bytes = engine.options.disk_reserve_bytes
    signs.model = engine.predictor.model.trouble()
    connected = meter.connected()
    signs.idle = idle(engine.reads, connected)
    signs.paused = tuple(lane.name for lane in seen.lanes if lane.paused)
    signs.unserved = {
        lane.name: lane.ready
        for lane in seen.lanes
        if lane.ready
        and lane.name != "entity:"
        and not (lane.pushed or lane.paused or lane.consumers or lane.running)
    }
    signs.unserved |= unserved(engine.reads, connected)


# Text.


def _narrative(status: str, signs: Signs, anomalies: list[Anomaly]) -> str:
    """One sentence, with numbers, that answers: is it on time?"""
    if status == DOWN:
        first = next(each for each in anomalies if each.severity == DOWN)
        return f"Down: {first.detail.rstrip('.')}."
    ranked = sorted(
        anomalies, key=lambda each: (each.code not in ("LATE", "REFUSING"), each.severity == NOTE)
    )
    if status == DEGRADED:
        first, *others = ranked
        late = first.code in ("LATE", "REFUSING")
        beginning = f"Late: {first.detail}" if late else f"Degraded: {first.detail}; {_punctual(signs)}"
    else:
        others = ranked
        # It is unknown yet whether the waiting intents are on time.
        waits = signs.held_back or (signs.due and not _measured(signs))
        beginning = f"{'Up' if waits else 'On time'}: {_punctual(signs)}"
    sentence = f"{beginning}; {_work(signs)}"
    if others:
        sentence += f". But {others[0].detail}"
        if len(others) > 1:
            sentence += f", and {plural(len(others) - 1, 'more problem')}"
    return sentence + "."


def _measured(signs: Signs) -> list[TierSign]:
    return [each for each in signs.tiers if each.p99_ms is not None]


def _punctual(signs: Signs) -> str:
    measured = _measured(signs)
    if not measured:
        active = signs.due or signs.running or signs.held_back
        return f"{'no lateness was measured' if active else 'nothing was due'} in the last minutes"
    return "lateness at p99 is " + ", ".join(
        f"{each.p99_ms:.0f} ms for {each.tier} (bound {each.bound_ms} ms{_few(each.count)})"
        for each in measured
    )


def _few(count: int) -> str:
    """The number of samples, if it is below a hundred: then p99 is the maximum."""
    return f", of {plural(count, 'sample')}" if count < 100 else ""


def _work(signs: Signs) -> str:
    words = [f"{plural(signs.running, 'delivery').replace('deliverys', 'deliveries')} under way"]
    words.append(f"{signs.due:,} due")
    if signs.held_since_ms is not None:
        late = span(max(0, signs.now_ms - signs.held_since_ms))
        words.append(f"{signs.held_back:,} held back, the oldest {late} late")
    waiting = plural(signs.scheduled, "intent") + " scheduled"
    if signs.next_ms is not None and signs.scheduled:
        waiting += f", the next in {span(max(0, signs.next_ms - signs.now_ms))}"
    words.append(waiting)
    if signs.dead_hour:
        words.append(f"{plural(signs.dead_hour, 'dead letter')} in the last hour")
    return ", ".join(words)


def _vitals(signs: Signs) -> Vitals:
    oldest_ms, held_ms = signs.oldest_due_ms, signs.held_since_ms
    seen = {each.tier: each for each in signs.tiers}
    return Vitals(
        lateness={
            name: _vital(seen.get(name), TIER_WINDOW_MS[number]) for number, name in enumerate(TIER_NAMES)
        },
        due_now=signs.due,
        running=signs.running,
        oldest_due_ms=None if oldest_ms is None else max(0, signs.now_ms - oldest_ms),
        held_back=signs.held_back,
        oldest_held_back_ms=None if held_ms is None else max(0, signs.now_ms - held_ms),
        dead_letters_last_hour=signs.dead_hour,
        log_sync_p99_ms=None if signs.sync_p99_ms is None else round(signs.sync_p99_ms, 2),
        last_sync_at=written_or_none(signs.last_sync_ms),
        checkpoint_lag_bytes=signs.checkpoint_lag_bytes,
        disk_free_bytes=signs.disk_free_bytes,
        memory_bytes=signs.memory_bytes,
    )


def _vital(tier: TierSign | None, bound_ms: int) -> Vital:
    if tier is None or tier.p50_ms is None or tier.p99_ms is None:
        return Vital(p50_ms=None, p99_ms=None, bound_ms=bound_ms, samples=0 if tier is None else tier.count)
    return Vital(
        p50_ms=round(tier.p50_ms, 1), p99_ms=round(tier.p99_ms, 1), bound_ms=bound_ms, samples=tier.count
    )


def _unnamed(rule: HealthRule, found: list[Anomaly]) -> list[Anomaly]:
    """The anomalies without addresses of receivers: those with an address are replaced by their number."""
    hidden = [each for each in found if "://" in each.subject or each.subject.startswith("callback:")]
    if not hidden:
        return found
    count = len(hidden)
    detail = f"{plural(count, 'receiver')} of callbacks {'is' if count == 1 else 'are'} {rule.state}"
    since = min(each.since for each in hidden)
    rest = [each for each in found if each not in hidden]
    return [*rest, replace(hidden[0], subject="", since=since, detail=detail)]


def _anomaly(rule: HealthRule, subject: str, watch: _Watch) -> Anomaly:
    return Anomaly(
        code=rule.code,
        severity=rule.severity,
        subject=subject,
        since=written(watch.bad_since_ms),
        detail=watch.detail,
        meaning=rule.meaning,
        advice=rule.advice,
    )
