"""When and on what terms: everything that may be said about an intent besides its target and payload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from duetime.client.app import limit
from duetime.client.app.times import Delay, Moment, delay_ms, moment_ms
from duetime.client.http.models import Limit
from duetime.errors import DeadlineTooEarly, InvalidField, TimeMissing, TooLarge, UnknownTier
from duetime.protocol import bounds
from duetime.protocol.intent import Item, Ties
from duetime.protocol.terms import (
    ACK_BY_TIER,
    AckLevel,
    AfterOn,
    Backoff,
    Bare,
    Claim,
    Entity,
    ExpiredAction,
    Guarantee,
    OnDuplicate,
    OnInterrupt,
    Redelivery,
    Target,
    Terms,
    Tier,
    Until,
    lane_of,
)

if TYPE_CHECKING:
    from duetime.client.app.handle import Handle

# Where the defaults of the terms stand.
DEFAULTS = Terms(Bare(), "bare:")
PRIORITIES = {"HIGH": 300, "NORMAL": 0, "LOW": -300}


class Retry(Struct, frozen=True, kw_only=True):
    """How often to try, and how long to wait in between."""

    max_attempts: int = 5
    backoff: str = "exponential"
    initial_delay: Delay = 1
    max_delay: Delay | None = None
    """None: a minute, or the initial delay if that is longer."""
    multiplier: float = 2
    jitter: bool = True

    def __post_init__(self) -> None:
        self.policy()  # what is wrong is said where it is written

    def policy(self) -> Redelivery:
        initial_ms = delay_ms(self.initial_delay)
        max_ms = max(DEFAULTS.redelivery.max_delay_ms, initial_ms)
        if self.max_delay is not None:
            max_ms = delay_ms(self.max_delay)
            if max_ms < initial_ms:
                raise InvalidField(
                    "max_delay is shorter than initial_delay.", hint="Give a longer max_delay."
                )
        if not 1 <= self.multiplier <= 1000:
            raise InvalidField(f"The multiplier {self.multiplier!r} must be from 1 to 1000.")
        policy = Redelivery(
            max_attempts=self.max_attempts,
            backoff=choice(Backoff, self.backoff, "backoff"),
            initial_delay_ms=initial_ms,
            max_delay_ms=max_ms,
            multiplier_percent=round(100 * self.multiplier),
            jitter=self.jitter,
        )
        raise_for(bounds.unreadable(policy, Redelivery) or bounds.redelivery(policy))
        return policy


class Unique(Struct, frozen=True):
    """No other intent with this key `until` this one starts, until it ends (the default), or `lasting` a time
    from its making, whatever becomes of it."""

    key: str
    until: str | None = None
    lasting: Delay | None = None

    def __post_init__(self) -> None:
        self.claim()  # what is wrong is said where it is written

    def claim(self) -> Claim:
        until = choice(Until, self.until or ("END" if self.lasting is None else "TIME"), "until")
        if until >= Until.DEBOUNCE or (until is Until.TIME) != (self.lasting is not None):
            raise InvalidField(
                f"until={self.until!r} cannot be combined with lasting={self.lasting!r}.",
                hint='Write until="start", until="end" or lasting="1h".',
            )
        return _checked(Claim(self.key, until, delay_ms(self.lasting) if self.lasting is not None else 0))


class Options(Struct, frozen=True, kw_only=True):
    """What may be said of an intent. None: the default."""

    id: str | None = None
    at: Moment | None = None
    delay: Delay | None = None
    deadline: Moment | None = None
    expired_action: str | None = None
    tier: str | None = None
    ack: str | None = None
    guarantee: str | None = None
    on_interrupt: str | None = None
    priority: int | str | None = None
    retry: Retry | None = None
    timeout: Delay | None = None
    lease: Delay | None = None
    result_ttl: Delay | None = None
    after: Iterable[Handle[Any] | str] | None = None
    after_on: str | None = None
    key: str | None = None
    on_duplicate: str | None = None
    unique: Unique | None = None
    collapse_key: str | None = None
    collapse: str | None = None
    tags: Mapping[str, str] | None = None
    limits: Iterable[Limit | Mapping[str, Any]] | None = None
    shard_key: str | None = None
    traceparent: str | None = None
    fairness_key: str | None = None
    fairness_weight: int | None = None

    def merged(self, **changes: Any) -> Options:
        unknown = changes.keys() - set(self.__struct_fields__)
        if unknown:
            names = ", ".join(self.__struct_fields__)
            raise InvalidField(f"There is no option {sorted(unknown)[0]!r}.", hint=f"Options are: {names}.")
        if changes.get("after") is not None:
            after = changes["after"]
            single = isinstance(after, str) or not isinstance(after, Iterable)
            changes["after"] = (after,) if single else tuple(after)  # it may be read more than once
        if changes.get("limits") is not None:
            given = changes["limits"]
            if isinstance(given, Limit | Mapping) or not isinstance(given, Iterable):
                raise InvalidField(
                    "limits= must be a list.", hint='Write limits=[Limit(key="tenant:42", rate="20/s")].'
                )
            changes["limits"] = tuple(given)
        if changes.get("retry") is not None and not isinstance(changes["retry"], Retry):
            raise InvalidField(
                f"retry={changes['retry']!r} is not a Retry.", hint="Write Retry(max_attempts=3)."
            )
        if changes.get("unique") is not None and not isinstance(changes["unique"], Unique):
            raise InvalidField(f"unique={changes['unique']!r} is none.", hint='Write Unique("key").')
        if changes.get("tags") is not None and not isinstance(changes["tags"], Mapping):
            raise InvalidField(
                f"tags={changes['tags']!r} is not a mapping.", hint='Write tags={"name": "value"}.'
            )
        return replace(self, **changes)


# Options that say something of one intent; the others make its terms, which many share.
PER_INTENT = frozenset(
    {
        "id", "at", "delay", "deadline", "after", "key", "on_duplicate", "traceparent", "unique",
        "collapse_key", "collapse",
    }
)  # fmt: skip


class Plan:
    """Options made ready: what is the same for all intents once, then an item for each."""

    __slots__ = (
        "_after",
        "_at_ms",
        "_deadline_ms",
        "_delay_ms",
        "_key_base",
        "_on_duplicate",
        "_payload_bytes_max",
        "_plain",
        "_ties",
        "options",
        "terms",
    )

    def __init__(self, terms: Terms, options: Options, payload_bytes_max: int) -> None:
        self.terms = terms
        self.options = options
        self._payload_bytes_max = payload_bytes_max
        self._after = tuple(_id_of(each) for each in options.after or ())
        self._key_base: bytes | None = None
        if options.at is not None and options.delay is not None:
            raise TimeMissing("Both at and delay are given.", hint="Give one of them, or neither for now.")
        self._at_ms = moment_ms(options.at) if options.at is not None else None
        self._delay_ms = delay_ms(options.delay) if options.delay is not None else 0
        self._deadline_ms = moment_ms(options.deadline) if options.deadline is not None else 0
        self._on_duplicate = choice(OnDuplicate, options.on_duplicate or "LIVE", "on_duplicate")
        claim = _claim(options)
        self._ties = Ties(claim) if claim is not None else None
        said = (options.key, options.after or None, options.traceparent, options.deadline, self._ties)
        # Nothing is said that could be wrong, but the time.
        self._plain = said == (None, None, None, None, None)

    def item(self, id: str, fresh: bool, now_ms: int, payload: bytes) -> Item:
        """One new intent."""
        options = self.options
        if len(payload) > self._payload_bytes_max:
            raise TooLarge(f"The payload has {len(payload)} bytes; {self._payload_bytes_max} are allowed.")
        execute_at_ms = now_ms + self._delay_ms if self._at_ms is None else self._at_ms
        if self._plain and fresh and 0 <= execute_at_ms <= bounds.TIME_MS_MAX:
            return Item(id, 0, execute_at_ms, payload, fresh=True, relative=self._at_ms is None)
        deadline_ms = self._deadline_ms
        if deadline_ms and deadline_ms < execute_at_ms:
            raise DeadlineTooEarly("The deadline is before the time of execution.")
        item = Item(
            id, 0, execute_at_ms, payload, deadline_ms, options.key,
            self.fingerprint(payload) if options.key is not None else 0,
            self._on_duplicate, self._after, options.traceparent, fresh, self._at_ms is None,
            ties=self._ties,
        )  # fmt: skip
        raise_for(bounds.item(item))
        return item

    def fingerprint(self, payload: bytes) -> int:
        """The same for the same request, whenever it is made: what is counted from now is left out."""
        if self._key_base is None:
            self._key_base = msgspec.msgpack.encode((self.terms.target, self._after))
        body = b"\0".join((self._key_base, str(self._at_ms).encode(), payload))
        return int.from_bytes(blake2b(body, digest_size=6).digest(), "big")


def make_terms(target: Target, options: Options, default_tier: str) -> Terms:
    """The terms these options make. Checked: what is wrong is said here, before anything is stored."""
    tier = choice(Tier, options.tier or default_tier, "tier", UnknownTier)
    entity = type(target) is Entity
    guarantee, on_interrupt = _guarantee(options, entity)
    terms = Terms(
        target=target,
        lane=lane_of(target),
        tier=tier,
        ack=choice(AckLevel, options.ack, "ack") if options.ack is not None else ACK_BY_TIER[tier],
        guarantee=guarantee,
        on_interrupt=on_interrupt,
        redelivery=options.retry.policy() if options.retry is not None else Redelivery(),
        priority=_priority(options.priority),
        timeout_ms=delay_ms(options.timeout) if options.timeout is not None else DEFAULTS.timeout_ms,
        lease_ms=delay_ms(options.lease) if options.lease is not None else DEFAULTS.lease_ms,
        result_ttl_ms=delay_ms(options.result_ttl) if options.result_ttl is not None else 0,
        expired_action=choice(ExpiredAction, options.expired_action or "DISCARD", "expired_action"),
        tags=dict(options.tags) if options.tags else None,
        shard_key=options.shard_key,
        after_on=choice(AfterOn, options.after_on or "SUCCESS", "after_on"),
        fairness_key=options.fairness_key,
        fairness_weight=1 if options.fairness_weight is None else options.fairness_weight,
        limits=limit.kept(options.limits) if options.limits is not None else None,
    )
    raise_for(bounds.terms(terms))
    return terms


def _claim(options: Options) -> Claim | None:
    """What the options say of a key that one intent has at a time."""
    if options.unique is not None:
        if options.collapse_key is not None or options.collapse is not None:
            raise InvalidField(
                "Both unique and collapse_key are given.",
                hint="unique refuses later intents, collapse_key lets them replace this one: use one.",
            )
        return options.unique.claim()
    if options.collapse_key is None:
        if options.collapse is not None:
            raise InvalidField("collapse is given without a collapse_key.", hint="Give both, or none.")
        return None
    until = choice(Until, options.collapse or "DEBOUNCE", "collapse")
    if until < Until.DEBOUNCE:
        raise InvalidField(
            f"There is no collapse mode {options.collapse!r}.", hint="Use DEBOUNCE or THROTTLE."
        )
    return _checked(Claim(options.collapse_key, until))


def _checked(claim: Claim) -> Claim:
    raise_for(bounds.unreadable(claim, Claim) or bounds.claim(claim))
    return claim


def _id_of(parent: Handle[Any] | str) -> str:
    id = parent if isinstance(parent, str) else getattr(parent, "id", None)
    if not isinstance(id, str):
        raise InvalidField(f"after names {parent!r}.", hint="Give handles (await them first) or ids.")
    return id


def _guarantee(options: Options, entity: bool) -> tuple[Guarantee, OnInterrupt]:
    """An entity's messages run at most once, unless an interrupted one is to be tried again."""
    on_interrupt: OnInterrupt | None = None
    if options.on_interrupt is not None:
        on_interrupt = choice(OnInterrupt, options.on_interrupt, "on_interrupt")
    once = entity and on_interrupt is not OnInterrupt.RETRY
    named = options.guarantee or ("AT_MOST_ONCE" if once else "AT_LEAST_ONCE")
    guarantee: Guarantee = choice(Guarantee, named, "guarantee")
    if guarantee is Guarantee.AT_LEAST_ONCE:
        return guarantee, on_interrupt if on_interrupt is not None else OnInterrupt.RETRY
    if on_interrupt is OnInterrupt.RETRY:
        raise InvalidField(
            "An at-most-once intent cannot be retried after an interruption.",
            hint="Use guarantee='AT_LEAST_ONCE', or omit on_interrupt.",
        )
    return guarantee, OnInterrupt.DEAD_LETTER


def _priority(priority: int | str | None) -> int:
    if isinstance(priority, str):
        if priority.upper() not in PRIORITIES:
            raise InvalidField(
                f"There is no priority {priority!r}.", hint="Use HIGH, NORMAL, LOW or seconds of head start."
            )
        return PRIORITIES[priority.upper()]
    return priority or 0


def choice(
    kind: Any, name: str, field: str, error: type[InvalidField] | type[UnknownTier] = InvalidField
) -> Any:
    """A member of an enum by its name, in any case, with - or _."""
    try:
        return kind[str(name).upper().replace("-", "_")]
    except KeyError:
        names = ", ".join(member.name for member in kind)
        raise error(f"There is no {field} {name!r}.", hint=f"Use one of {names}.") from None


def raise_for(problem: str | None) -> None:
    """A broken bound as the error its caller sees."""
    if problem is not None:
        raise InvalidField(problem)
