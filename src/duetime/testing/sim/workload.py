"""The callers' commands in the simulator: every command with every option, in a different mix for each
seed."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from duetime.limits import DAY_MS, HOUR_MS, MINUTE_MS, TIER_PERMITS
from duetime.protocol.command import (
    Cancel,
    Command,
    Configure,
    FireNow,
    LaneSettings,
    Order,
    Patch,
    Pause,
    Purge,
    Resize,
    Resume,
    Revive,
    SetLane,
    Settings,
    Submit,
)
from duetime.protocol.intent import BLOCKED, DEAD_LETTERED, DUE, SCHEDULED, Item, Status
from duetime.protocol.terms import (
    ACK_BY_TIER,
    AckLevel,
    AfterOn,
    Backoff,
    Bare,
    Callback,
    Entity,
    ExpiredAction,
    Guarantee,
    Limit,
    OnDuplicate,
    OnInterrupt,
    Redelivery,
    Stream,
    Target,
    Task,
    Terms,
    Tier,
    lane_of,
    type_lane,
)
from duetime.testing.laws.checkers import IntentLives
from duetime.testing.laws.claims import ties
from duetime.testing.laws.groups import grow
from duetime.testing.laws.handover import branch, follow
from duetime.testing.laws.ticks import plan
from duetime.testing.sim.observed import Seen

KINDS = ("bare", "callback", "entity", "stream", "task")
_RECENT = 25


class Workload:
    """Makes commands. Reads the history only to choose ids that are worth naming."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._count = 0
        self._ids: list[str] = []
        self.lanes: dict[str, None] = {}
        # Of 20 commands that are not submits: how many of each kind, drawn for each seed.
        self._weights = [random.choice((0, 1, 3)) for _ in range(14)]
        self._small = random.random() < 0.6
        self._keyed, self._dated = random.choice((0.05, 0.3)), random.choice((0.1, 0.4))
        self._blocked = random.choice((0.0, 0.1, 0.3))
        self._claimed = random.choice((0.0, 0.2, 0.5))
        self._expected = random.choice((0.0, 0.5))
        self._grouped = random.choice((0.0, 0.05, 0.3))
        self._far = random.choice((0.05, 0.3))
        self._rates = [self._rate() for _ in range(3)]
        self._shared = random.choice((0.0, 0.5, 0.9))
        self._fair = Random(random.random())
        self._tenants = [(f"t{n}", self._fair.choice((1, 1, 2, 3, 10))) for n in range(4)]
        # Drawn from what is drawn already, so that the other draws of a seed stay the same.
        self._flows = Random(repr((self._rates, self._tenants, self._blocked)))
        self._handing = self._flows.choice((0.0, 0.3, 0.7))
        self._shapes = [self._terms() for _ in range(random.randint(2, 8))]

    def first(self) -> list[Command]:
        """The first commands of a seed: few permits, so that they run out; settings of its own."""
        random = self._random
        commands: list[Command] = []
        if self._small:
            commands += [Resize(tier, random.randint(1, 4)) for tier in range(len(TIER_PERMITS))]
        if random.random() < 0.5:
            commands.append(Configure(self._settings()))
        return commands

    def next(self, now_ms: int, history: IntentLives) -> tuple[Command, AckLevel]:
        """The next command of some caller, and its ack level."""
        random = self._random
        if random.random() < 0.55 or not any(self._weights) or not self._ids:
            return self._submit(now_ms, history)
        command = self._other(random.choices(range(14), self._weights)[0], now_ms, history)
        return command, random.choice((AckLevel.ASYNC, AckLevel.DURABLE))

    def _other(self, kind: int, now_ms: int, history: IntentLives) -> Command:
        random = self._random
        revision = random.choice((0, 0, 0, 1, 2, 3))
        match kind:
            case 0 | 1:
                return self._patch(now_ms, history)
            case 2:
                id, request = self._id(history, random.choice((None, BLOCKED))), self._request()
                tree = random.random() < 0.6
                return Cancel((history.groups.root(random) if tree else None) or id, revision, request, tree)
            case 3:
                return FireNow(self._id(history, SCHEDULED), revision, self._request())
            case 4 | 5:
                return self._revive(now_ms, history)
            case 6:
                lane = random.choice(list(self.lanes))
                return Pause(lane) if random.random() < 0.4 else Resume(lane)
            case 7:
                return Resize(random.randint(0, 4), random.choice((1, 2, 3, 5, 50, 0)))
            case 9:
                rate, period_ms, burst, concurrency = (
                    self._rate() if random.random() < 0.6 else (0, 1_000, 1, 0)
                )
                lane = random.choice(list(self.lanes))
                return SetLane(
                    lane, LaneSettings(concurrency, rate, period_ms, burst, order=self._order(lane))
                )
            case 8:
                return Purge(tuple(self._id(history, DEAD_LETTERED) for _ in range(random.randint(1, 3))))
            case 10:
                return Configure(self._settings())
        return plan(random, now_ms, random.choice(self._shapes), history.ticks.kept)

    def _order(self, lane: str) -> Order:
        return Order.FIFO if lane.startswith("entity:") else self._random.choice(list(Order))

    def _request(self) -> str | None:
        """The id of a caller's request; some callers repeat one."""
        return f"r{self._random.randint(0, 9)}" if self._random.random() < 0.3 else None

    def _id(self, history: IntentLives, wanted: Status | None) -> str:
        """The id of some intent: a recent one, in the wanted status if a few tries find one."""
        random = self._random
        if random.random() < 0.03:
            return "nobody"
        recent = self._ids[-_RECENT:] if random.random() < 0.7 else self._ids
        id = random.choice(recent)
        for _ in range(5):
            seen = history.seen.get(id)
            if wanted is None or (seen is not None and seen.status is wanted):
                break
            id = random.choice(recent)
        return id

    def _submit(self, now_ms: int, history: IntentLives) -> tuple[Command, AckLevel]:
        random = self._random
        count = 1 if random.random() < 0.7 else random.randint(2, 6)
        terms = [random.choice(self._shapes) for _ in range(random.choice((1, 1, 2)))]
        if random.random() < 0.1:
            terms[0] = self._terms()
        terms = [self._tenant(each) for each in terms]
        if self._flows.random() < self._handing:
            terms = [branch(self._flows, each) for each in terms]
        for each in terms:
            self.lanes[each.lane] = None
            if type(each.target) is Entity:
                self.lanes[type_lane(each.target.kind)] = None
        items = [self._item(random.randrange(len(terms)), now_ms) for _ in range(count)]
        if random.random() < self._grouped:
            items = grow(random, history.groups, self._item(0, now_ms), items[-1])
            self._ids += [item.id for item in items]
        elif random.random() < 0.03:  # the same id twice
            items.append(Item(items[-1].id, 0, now_ms, request=items[-1].request))
        if self._flows.random() < self._handing:
            items = [follow(self._flows, item) for item in items]
        return Submit(tuple(terms), tuple(items)), max(each.ack for each in terms)

    def _tenant(self, terms: Terms) -> Terms:
        """Some lanes are shared by a few keys, each with a constant weight."""
        if self._fair.random() >= self._shared:
            return terms
        key, weight = self._fair.choice(self._tenants)
        return replace(terms, fairness_key=key, fairness_weight=weight)

    def _item(self, terms: int, now_ms: int) -> Item:
        random = self._random
        self._count += 1
        id = f"i{self._count}"
        after: tuple[str, ...] = ()
        if self._ids and random.random() < self._blocked:
            after = tuple(random.choice(self._ids[-_RECENT:]) for _ in range(random.randint(1, 3)))
        self._ids.append(id)
        execute_at_ms = self._when(now_ms)
        deadline_ms = 0
        if random.random() < self._dated:
            deadline_ms = execute_at_ms + random.choice((0, 7, 120, 2_500, MINUTE_MS, -5))
        key = f"k{random.randint(0, 5)}" if random.random() < self._keyed else None
        return Item(
            id, terms, execute_at_ms, b"{}" if random.random() < 0.3 else b"", deadline_ms, key,
            random.choice((1, 1, 1, 2)), random.choice(list(OnDuplicate)), after,
            "00-trace" if random.random() < 0.1 else None, request=self._request(),
            ties=ties(random) if random.random() < self._claimed else None,
            expected_ms=random.choice((0, 40, 2_000, HOUR_MS)) if random.random() < self._expected else 0,
        )  # fmt: skip

    def _when(self, now_ms: int) -> int:
        random = self._random
        if random.random() < self._far:
            return now_ms + random.choice((HOUR_MS, 5 * HOUR_MS, 3 * DAY_MS)) + random.randint(0, 999)
        return now_ms + random.choice((0, 0, 0, 1, 30, 400, 3_000, MINUTE_MS, -900, -9_000))

    def _terms(self) -> Terms:
        random = self._random
        target = self._target()
        tier = random.choice(list(Tier))
        once = random.random() < 0.2
        return Terms(
            target, lane_of(target), tier,
            random.choice((ACK_BY_TIER[tier], AckLevel.ASYNC, AckLevel.DURABLE)),
            Guarantee.AT_MOST_ONCE if once else Guarantee.AT_LEAST_ONCE,
            OnInterrupt.DEAD_LETTER if random.random() < 0.2 else OnInterrupt.RETRY,
            self._redelivery(), random.choice((0, 0, 0, 5, -5, 600)), 30_000,
            random.choice((400, 3_000, 30_000)), random.choice(list(ExpiredAction)),
            limits=None if type(target) is Entity else self._limits(),
            after_on=AfterOn.END if random.random() < 0.3 else AfterOn.SUCCESS,
        )  # fmt: skip

    def _limits(self) -> tuple[Limit, ...] | None:
        """Some intents share a key, each key with constant numbers, as users would have it."""
        random = self._random
        if random.random() < 0.6:
            return None
        return tuple(
            Limit(f"l{n}", *self._rates[n]) for n in sorted(random.sample(range(3), random.randint(1, 2)))
        )

    def _rate(self) -> tuple[int, int, int, int]:
        random = self._random
        rate, period_ms, burst = random.choice(
            ((0, 1_000, 1), (2, 1_000, 1), (5, 300, 3), (1, 4_000, 2), (1000, 1_000, 5))
        )
        return rate, period_ms, burst, random.choice((0, 1, 2, 4)) if rate else random.choice((1, 2, 3))

    def _target(self) -> Target:
        random = self._random
        match random.choice(KINDS):
            case "callback":
                return Callback(
                    f"https://h{random.randint(0, 1)}.example.com/hook", batch=random.random() < 0.5
                )
            case "task":
                return Task("work", f"q{random.randint(0, 1)}")
            case "stream":
                return Stream(f"s{random.randint(0, 1)}")
            case "entity":
                return Entity("cart", f"e{random.randint(0, 2)}", "add")
        return Bare()

    def _redelivery(self) -> Redelivery:
        random = self._random
        initial_ms = random.choice((1, 50, 900))
        return Redelivery(
            random.choice((1, 2, 4, 8)),
            random.choice((Backoff.EXPONENTIAL, Backoff.EXPONENTIAL, Backoff.FIXED)),
            initial_ms, initial_ms * random.choice((1, 3, 20)), random.choice((100, 150, 200, 300)),
            random.random() < 0.5,
        )  # fmt: skip

    def _patch(self, now_ms: int, history: IntentLives) -> Patch:
        random = self._random

        def maybe(value: object) -> object:
            return value if random.random() < 0.3 else None

        deadline_ms = random.choice((0, now_ms + 50, now_ms + 4_000, now_ms + HOUR_MS))
        values = {
            "execute_at_ms": maybe(self._when(now_ms)),
            "deadline_ms": maybe(deadline_ms),
            "expired_action": maybe(random.choice(list(ExpiredAction))),
            "redelivery": maybe(self._redelivery()),
            "tags": maybe({"a": "b"}),
            "priority": maybe(random.choice((-50, 0, 50))),
            "payload": maybe(b"[1]"),
        }
        wanted = random.choice((None, SCHEDULED, DUE, BLOCKED))
        id, revision, request = self._id(history, wanted), random.choice((0, 0, 0, 2)), self._request()
        return Patch(id, revision, request=request, **values)  # type: ignore[arg-type]

    def _revive(self, now_ms: int, history: IntentLives) -> Revive:
        random = self._random
        return Revive(
            self._id(history, DEAD_LETTERED), random.choice((0, 0, 0, 4)),
            self._when(now_ms) if random.random() < 0.5 else 0,
            random.choice((None, None, 0, now_ms + 700, now_ms + HOUR_MS)),
            self._target() if random.random() < 0.2 else None,
            self._redelivery() if random.random() < 0.3 else None,
            b"[2]" if random.random() < 0.3 else None, self._request(),
        )  # fmt: skip

    def _settings(self) -> Settings:
        random = self._random
        tight = random.random() < 0.15
        pushed = random.choice(
            (Settings().pushed, Settings().pushed, ("bare", "callback"), ("entity", "task"), KINDS)
        )
        return Settings(
            pending_max=random.randint(5, 20) if tight else 1_000,
            lane_pending_max=random.randint(2, 6) if tight else 1_000,
            entity_pending_max=random.randint(1, 3) if tight else 1_000,
            entities_max=random.randint(1, 2) if tight else 1_000,
            key_window_ms=random.choice((MINUTE_MS, HOUR_MS, DAY_MS)),
            retention_ms=random.choice((0, MINUTE_MS, HOUR_MS, 7 * DAY_MS)),
            dead_letter_retention_ms=random.choice((MINUTE_MS, DAY_MS, 30 * DAY_MS)),
            pushed=pushed,
            pack=random.choice((1, 2, 3, 200)),
        )


def stuck(seen: Seen) -> str:
    """One line about an intent that did not end."""
    return f"{seen.id} {seen.status!r} in {seen.lane} (delivery {seen.delivery})"
