"""The kernel's whole state. Plain objects; the file of each command says which part it changes."""

from __future__ import annotations

from duetime.kernel.queues import entity_types
from duetime.kernel.queues.entity_types import Kind
from duetime.kernel.queues.fairness import KeyShares
from duetime.kernel.queues.lanes import Lane, Track
from duetime.kernel.queues.limiters import Flow
from duetime.kernel.queues.tiers import Tiers
from duetime.kernel.timers import Timers
from duetime.kernel.timetables import Timetables
from duetime.limits import TIER_NAMES
from duetime.protocol.checkpoint import Checkpoint, Consumer, Marks, Turns
from duetime.protocol.command import RULES, LaneSettings, Settings
from duetime.protocol.effect import Change, Effect, Voided
from duetime.protocol.intent import BLOCKED, DISPATCHING, DUE, SCHEDULED, Intent, Status
from duetime.protocol.terms import Limit, Terms
from duetime.store.store import KernelStore

# Live statuses come first in the enum, so their counts are a slice.
LIVE = (SCHEDULED, DUE, DISPATCHING, BLOCKED)
assert tuple(Status)[: len(LIVE)] == LIVE


class State:
    """Intents live in the store; timers, lanes and permits are derived from them after a restart."""

    def __init__(self, store: KernelStore) -> None:
        self.store = store
        self.timers = Timers(store)
        self.tiers = Tiers()
        self.settings = Settings()
        self.marks = Marks()
        self.lanes: dict[str, Lane] = {}
        self.queues: dict[str, Lane] = {}
        """The lanes that are not serial: few, while serial ones may be a million."""
        self.lane_settings: dict[str, LaneSettings] = {}
        self.flow = Flow()
        self.timetables = Timetables()
        self.entities = 0
        """The number of serial lanes."""
        self.waiting: dict[str, int] = {}
        """Messages of each entity that wait for their time or for other intents. They need no lane yet: a
        cold entity costs one number, while it has such messages."""
        self.resting = 0
        """Entities that have only such messages, and therefore no lane."""
        self.kinds: dict[str, Kind] = {}
        """Ready entities by the lane of their type, for consumers that ask for any of them."""
        self.type_pauses: dict[str, list[tuple[int, int]]] = {}
        """The newest pauses of entity types, by the lane of the type, because the lane itself is forgotten
        while no consumer asks for it. As `Lane.pauses`."""
        self.behind_others = 0
        """Messages that are due but wait for an earlier one of their entity. No decision depends on it."""
        self.eager: dict[str, None] = {}
        """Entity types that may have something new to hand out."""
        self.consumers: dict[str, Consumer] = {}
        self.out: dict[str, dict[str, Intent]] = {"": {}}
        """Current deliveries: by consumer (empty name: pushed by the engine), then by id."""
        self.tally = [0] * (len(TIER_NAMES) * 64)
        """Transitions by tier, old and new status, at `tier * 64 + old * 8 + new`; from a status to itself:
        created with it. They give the number of intents per tier and status. No decision depends on them."""
        self.alive = 0
        """The number of intents that are not final."""
        self.records = 0
        self.at_ms = 0
        self.latest_ms = 0
        """The latest timestamp so far. Below it, the clock was set back."""
        self.behind = False
        self.woken = 0
        """Intents woken by the records with this timestamp: see `limits.WAKES_MAX`."""
        self.handed = 0
        """Ready intents that these records examined for hand-out: see `limits.HANDS_MAX`."""
        self.doubt_ms = 0
        """How far the clock jumped ahead, while the jump is not trusted yet."""
        self.doubt_until_ms = 0
        """When the jump becomes trusted, by the flow clock."""
        self.draining = False
        self.epoch = 0
        self.rules = RULES
        """The version of the rules that the newest `Start` names (see `command.RULES`)."""
        self.seq = 0
        self.ended = 0
        self.stale = 0
        """Outcomes refused since the start because their delivery was not the current one."""
        # What one record asked for; the kernel empties these with each record.
        self.effects: list[Effect] = []
        self.changes: list[Change] | None = None
        """None: there is no watcher, and changes are not listed."""
        self.voided: list[Voided] = []
        self.stirred: dict[Track, None] = {}
        """Tracks that may have something new to hand out, in the order they were stirred."""
        self.ended_parents: list[Intent] = []
        self.untold: list[Intent] = []
        """Callbacks that ended without success, and have a URL for that."""
        """Intents that ended while others wait for them."""

    def lane_for(self, terms: Terms) -> Lane:
        """The lane of these terms, created if missing."""
        lane = self.lanes.get(terms.lane)
        return lane if lane is not None else self.open_lane(terms.lane)

    def count_in(self, terms: Terms) -> None:
        """Count a new live intent in its lane. A message of an entity counts as waiting until it is due."""
        if terms.serial:
            self.wait_in(terms.lane, 1)
        else:
            self.lane_for(terms).pending += 1

    def wait_in(self, name: str, more: int) -> None:
        """Add to the number of an entity's messages that wait for their time or for other intents."""
        had = self.waiting.get(name, 0)
        assert had + more >= 0, f"{name!r} has {had} messages that wait"
        if had + more:
            self.waiting[name] = had + more
        else:
            del self.waiting[name]
        if name not in self.lanes:
            self.resting += bool(had + more) - bool(had)

    def crowd(self, name: str) -> int:
        """Live messages of an entity, including delayed ones."""
        lane = self.lanes.get(name)
        return self.waiting.get(name, 0) + (lane.pending if lane is not None else 0)

    def open_lane(self, name: str) -> Lane:
        """A new lane. Its kind is the first part of its name."""
        kind = name.partition(":")[0]
        serial = kind == "entity"
        lane = self.lanes[name] = Lane(name, serial=serial, pushed=kind in self.settings.pushed)
        lane.limit = self.limit_of(name)
        if serial:
            self.entities += 1
            self.resting -= name in self.waiting
        else:
            self.queues[name] = lane
        return lane

    def limit_of(self, lane: str) -> Limit | None:
        """The limit of a lane, from its settings."""
        settings = self.lane_settings.get(lane)
        if settings is None or not (settings.rate or settings.concurrency):
            return None
        return Limit(lane, settings.rate, settings.period_ms, settings.burst, settings.concurrency)

    def drop_if_idle(self, lane: Lane) -> None:
        """Forget a lane that holds nothing, so that memory depends only on what is live."""
        if lane.idle():
            del self.lanes[lane.name]
            if lane.serial:
                self.entities -= 1
                self.resting += lane.name in self.waiting
            else:
                del self.queues[lane.name]
            for track in lane.tracks:
                # Stale entries and a stale listing must not affect a later lane of the same name.
                track.clear()
                if track.listed is not None and lane.serial and not lane.pushed:
                    entity_types.withdraw(self, track)
                track.listed = None

    @property
    def counts(self) -> list[int]:
        """Intents by status, from the tally. For inspection, not for the hot path."""
        came, went = [0] * len(Status), [0] * len(Status)
        for place, times in enumerate(self.tally):
            if times:
                old, new = place >> 3 & 7, place & 7
                came[new] += times
                if old != new:
                    went[old] += times
        return [more - less for more, less in zip(came, went, strict=True)]

    def believed_ms(self) -> int:
        """The trusted time: a jump ahead counts only after a while."""
        return self.at_ms - self.doubt_ms

    def live(self) -> int:
        """The number of intents that are not final."""
        return self.alive

    def checkpoint(self, position: int) -> Checkpoint:
        """Everything that cannot be derived from the intents, at this position."""
        marked, shared = self._marked()
        full_ns = self.flow.now_ms * 1_000_000
        limiters = self.flow.limiters.values()
        return Checkpoint(
            position=position,
            records=self.records,
            at_ms=self.at_ms,
            latest_ms=self.latest_ms,
            epoch=self.epoch,
            seq=self.seq,
            ended=self.ended,
            settings=self.settings,
            marks=self.marks,
            permits=tuple(permits.max for permits in self.tiers.all),
            counts=tuple(self.counts),
            pending={name: lane.pending for name, lane in self.queues.items()},
            paused=tuple(lane.name for lane in marked if lane.paused),
            consumers=tuple(Consumer(c.name, c.seen_at_ms, dict(c.credits)) for c in self.consumers.values()),
            draining=self.draining,
            lanes=dict(sorted(self.lane_settings.items())),
            buckets=dict(sorted((each.name, each.full_ns) for each in limiters if each.full_ns > full_ns)),
            flow_ms=self.flow.now_ms,
            schedules=tuple(sorted(self.timetables.all.values(), key=lambda table: table.id)),
            tally=tuple(self.tally),
            turns={lane.name: tuple(lane.turns) for lane in marked if lane.turns},
            shares=tuple(
                Turns(name, tier, shares.entry - shares.level, shares.kept())
                for name, tier, shares in sorted(shared, key=lambda each: each[:2])
            ),
            rules=self.rules,
            pauses=tuple(
                sorted(
                    (name, tuple(pauses))
                    for name, pauses in (
                        *((lane.name, lane.pauses) for lane in marked),
                        *self.type_pauses.items(),
                    )
                    if pauses
                )
            ),
            woken=self.woken,
            handed=self.handed,
            doubt_ms=self.doubt_ms,
            doubt_until_ms=self.doubt_until_ms,
            waiting=dict(self.waiting),
        )

    def _marked(self) -> tuple[list[Lane], list[tuple[str, int, KeyShares]]]:
        """The lanes for which a checkpoint stores more than the number pending, and the shares of tracks. One
        pass over the lanes, because there may be a million."""
        marked: list[Lane] = []
        shared: list[tuple[str, int, KeyShares]] = []
        for lane in self.lanes.values():
            if lane.turns or lane.paused or lane.pauses:
                marked.append(lane)
            if not lane.serial:
                for track in lane.tracks:
                    if track.shares is not None:
                        shared.append((lane.name, track.tier, track.shares))
        return marked, shared
