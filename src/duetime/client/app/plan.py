"""The time, the terms and the options of an intent: everything except its target and payload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from duetime.client.app.middleware import Added, NewCall
from duetime.client.app.options import Changes, OptionValues
from duetime.client.app.payload import encode
from duetime.client.app.policies import Retry, Unique, checked_claim, choice, raise_for
from duetime.client.app.times import delay_ms, moment_ms
from duetime.errors import DeadlineTooEarly, InvalidField, TimeMissing, TooLarge, UnknownTier
from duetime.protocol import bounds
from duetime.protocol.command import Patch
from duetime.protocol.intent import Item, Ties
from duetime.protocol.terms import (
    ACK_BY_TIER,
    AckLevel,
    Claim,
    Entity,
    ExpiredAction,
    Guarantee,
    OnDuplicate,
    OnInterrupt,
    Target,
    Task,
    Terms,
    Tier,
    Until,
    lane_of,
    title_of,
)
from duetime.protocol.terms import Limit as StoredLimit
from duetime.wire import rates, slo, terms
from duetime.wire.intent import PRIORITIES, Limit
from duetime.wire.names import short

if TYPE_CHECKING:
    from duetime.client.app.handle import Handle

_NO_TIES = Ties()
_LIMIT_HINT = 'Write Limit(key="tenant:42", rate="20/s", burst=5, concurrency=3).'


class Options(OptionValues, frozen=True, kw_only=True):
    """The options of an intent. None: the default."""

    def merged(self, **changes: Any) -> Options:
        unknown = changes.keys() - set(self.__struct_fields__)
        if unknown:
            names = ", ".join(self.__struct_fields__)
            raise InvalidField(f"There is no option {sorted(unknown)[0]!r}.", hint=f"Options are: {names}.")
        if changes.get("after") is not None:
            after = changes["after"]
            single = isinstance(after, str) or not isinstance(after, Iterable)
            changes["after"] = (after,) if single else tuple(after)  # an iterator could be read only once
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
            raise InvalidField(f"unique={changes['unique']!r} is not a Unique.", hint='Write Unique("key").')
        for name in ("tags", "headers"):
            if changes.get(name) is not None and not isinstance(changes[name], Mapping):
                raise InvalidField(
                    f"{name}={changes[name]!r} is not a mapping.", hint=f'Write {name}={{"name": "value"}}.'
                )
        return replace(self, **changes)


class Plan:
    """Prepared options: the terms, which all intents share, and a function that creates the item of each."""

    __slots__ = (
        "_after",
        "_at_ms",
        "_deadline_ms",
        "_delay_ms",
        "_headers",
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
        after_delay_ms = delay_ms(options.after_delay) if options.after_delay is not None else 0
        self._ties = Ties(claim, delay_ms=after_delay_ms) if claim is not None or after_delay_ms else None
        if options.deadline is not None and options.expires is not None:
            raise InvalidField("Both deadline and expires are given.", hint="Give one of them.")
        self._headers = dict(options.headers) if options.headers else None
        said = (
            options.key, options.after or None, options.traceparent, options.deadline, self._ties,
            self._headers,
        )  # fmt: skip
        # Only the time could be invalid here.
        self._plain = all(each is None for each in said)

    def item(self, id: str, fresh: bool, now_ms: int, payload: bytes, added: Added | None = None) -> Item:
        """One new intent. `added`: the headers and the trace of middleware."""
        options = self.options
        if len(payload) > self._payload_bytes_max:
            raise TooLarge(f"The payload has {len(payload)} bytes; {self._payload_bytes_max} are allowed.")
        execute_at_ms = now_ms + self._delay_ms if self._at_ms is None else self._at_ms
        if self._plain and fresh and added is None and 0 <= execute_at_ms <= bounds.TIME_MS_MAX:
            return Item(id, 0, execute_at_ms, payload, fresh=True, relative=self._at_ms is None)
        deadline_ms = self._deadline_ms
        if deadline_ms and deadline_ms < execute_at_ms:
            raise DeadlineTooEarly("The deadline is before the time of execution.")
        headers, traceparent = (self._headers, options.traceparent) if added is None else added
        item = Item(
            id, 0, execute_at_ms, payload, deadline_ms, options.key,
            self.fingerprint(payload) if options.key is not None else 0,
            self._on_duplicate, self._after, traceparent, fresh, self._at_ms is None,
            ties=self._ties, headers=headers,
        )  # fmt: skip
        raise_for(bounds.item(item))
        return item

    def step(
        self,
        id: str,
        fresh: bool,
        now_ms: int,
        payload: bytes,
        added: Added | None,
        after: tuple[str, ...],
        ties: Ties,
        key: str | None,
    ) -> Item:
        """An intent of a flow. After other intents, its delay counts from their end. `key`: makes it
        repeatable."""
        options, own = self.options, self._ties if self._ties is not None else _NO_TIES
        if ties.group is None and not ties.members and (options.key is not None or own.claim is not None):
            raise InvalidField(
                "A step of a chain cannot have a key.",
                hint="Give the step an id instead; options(key=None) removes the key of a task.",
            )
        if len(payload) > self._payload_bytes_max:
            raise TooLarge(f"The payload has {len(payload)} bytes; {self._payload_bytes_max} are allowed.")
        follows = bool(after or ties.members)
        delay_ms = own.delay_ms + (self._delay_ms if follows else 0)
        at_ms = now_ms + (0 if follows else self._delay_ms) if self._at_ms is None else self._at_ms
        if self._deadline_ms and self._deadline_ms < at_ms:
            raise DeadlineTooEarly("The deadline is before the time of execution.")
        headers, traceparent = (self._headers, options.traceparent) if added is None else added
        tied = ties
        if delay_ms or own.claim is not None:
            tied = replace(ties, claim=own.claim, delay_ms=delay_ms)
        loose = tied == _NO_TIES
        item = Item(
            id,
            0,
            at_ms,
            payload,
            self._deadline_ms,
            options.key if key is None else key,
            self.fingerprint(payload) if not loose or key is not None else 0,
            self._on_duplicate if key is None else OnDuplicate.RETURN,
            (*(each for each in self._after if each not in after), *after),
            traceparent,
            fresh,
            self._at_ms is None,
            ties=None if loose else tied,
            headers=headers,
        )
        raise_for(bounds.item(item))
        return item

    def new_call(self, id: str, now_ms: int, args: Sequence[object], kwargs: Mapping[str, object]) -> NewCall:
        """The call as its middleware sees it."""
        target = self.terms.target
        return NewCall(
            title_of(target),
            target.queue if isinstance(target, Task) else "",
            args,
            kwargs,
            id,
            now_ms + self._delay_ms if self._at_ms is None else self._at_ms,
            self.terms.tags or {},
            dict(self._headers or {}),
            self.options.traceparent,
        )

    def fingerprint(self, payload: bytes) -> int:
        """A fingerprint that is the same for the same request at any time: relative times are excluded."""
        if self._key_base is None:
            self._key_base = msgspec.msgpack.encode((self.terms.target, self._after))
        body = b"\0".join((self._key_base, str(self._at_ms).encode(), payload))
        return int.from_bytes(blake2b(body, digest_size=6).digest(), "big")


def make_terms(target: Target, options: Options, default_tier: str) -> Terms:
    """The terms of these options. Invalid values are refused here, before anything is stored."""
    guarantee, on_interrupt = _guarantee(options, type(target) is Entity)
    tier, slo_ms = _tier(options, default_tier, guarantee)
    said = _plain(options)
    if options.retry is not None:
        said["redelivery"] = options.retry.policy()
    if options.limits is not None:
        said["limits"] = stored_limits(options.limits)
    made = Terms(
        target=target,
        lane=lane_of(target),
        tier=tier,
        ack=choice(AckLevel, options.ack, "ack") if options.ack is not None else ACK_BY_TIER[tier],
        guarantee=guarantee,
        on_interrupt=on_interrupt,
        priority=_priority(options.priority),
        slo_ms=slo_ms,
        **said,
    )
    raise_for(bounds.terms(made))
    return made


def _plain(options: Options) -> dict[str, Any]:
    """The options that are copied to the terms by name."""
    said: dict[str, Any] = {}
    for field in terms.PLAIN:
        name = short(field.name)
        value = getattr(options, name)
        if value is None:
            continue
        if field.enum is not None:
            value = choice(field.enum, value, name)
        elif field.name.endswith("_ms"):
            given, value = value, delay_ms(value)
            if not value:
                hint = "Omit it for the default."
                raise InvalidField(f"{name}={given!r} must be at least 1 ms.", hint=hint)
        elif isinstance(value, Mapping):
            value = dict(value) or None
        said[field.stored] = value
    return said


def _tier(options: Options, default: str, guarantee: Guarantee) -> tuple[Tier, int]:
    """The tier, and the lateness objective from which it was chosen (0: none)."""
    if options.slo is None:
        return choice(Tier, options.tier or default, "tier", UnknownTier), 0
    if options.tier is not None:
        raise InvalidField("Both tier and slo are given.", hint="Give one of them.")
    slo_ms = delay_ms(options.slo)
    return slo.choose(slo_ms, guarantee)[0], slo_ms


def _claim(options: Options) -> Claim | None:
    """The claim of the options: `unique` or `collapse_key`."""
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
    return checked_claim(Claim(options.collapse_key, until))


def _id_of(parent: Handle[Any] | str) -> str:
    id = parent if isinstance(parent, str) else getattr(parent, "id", None)
    if not isinstance(id, str):
        raise InvalidField(f"after names {parent!r}.", hint="Give handles (await them first) or ids.")
    return id


def _guarantee(options: Options, entity: bool) -> tuple[Guarantee, OnInterrupt]:
    """The guarantee: messages to entities are at-most-once, unless interrupted ones are retried."""
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


def patch_of(id: str, changes: Changes) -> Patch:
    """The command for these changes."""
    unknown = changes.keys() - Changes.__annotations__.keys()
    if unknown:
        names = ", ".join(Changes.__annotations__)
        raise InvalidField(f"{sorted(unknown)[0]!r} cannot be changed.", hint=f"Changes are: {names}.")
    at, deadline, retry = changes.get("at"), changes.get("deadline"), changes.get("retry")
    action, priority, tags = changes.get("expired_action"), changes.get("priority"), changes.get("tags")
    return Patch(
        id,
        execute_at_ms=None if at is None else moment_ms(at),
        deadline_ms=None if "deadline" not in changes else 0 if deadline is None else moment_ms(deadline),
        expired_action=None if action is None else choice(ExpiredAction, action, "expired_action"),
        redelivery=None if retry is None else retry.policy(),
        tags=None if tags is None else dict(tags),
        priority=None if priority is None else _priority(priority),
        payload=encode(changes["payload"], "The payload") if "payload" in changes else None,
    )


def stored_limits(given: Iterable[Limit | Mapping[str, object]]) -> tuple[StoredLimit, ...] | None:
    """As the engine stores them. Their bounds are checked with the rest of an intent's terms."""
    found = []
    for each in given:
        try:
            limit = each if isinstance(each, Limit) else msgspec.convert(each, Limit)
        except msgspec.ValidationError as error:
            raise InvalidField(f"{each!r} is not a limit: {error}.", hint=_LIMIT_HINT) from None
        found.append(rates.stored(limit))
    return tuple(found) or None
