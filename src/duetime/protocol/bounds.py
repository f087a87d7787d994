"""The bounds of every field of an intent, checked before anything is stored.

Each function returns the first problem as a sentence, or None. The client and the API both call these
functions.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from duetime.limits import (
    AFTER_MAX,
    ATTEMPTS_MAX,
    CATCH_UP_MAX,
    CRON_CHARS_MAX,
    DAY_MS,
    ERROR_CHARS_MAX,
    EVERY_MS_MIN,
    EXPECTED_MS_MAX,
    FAIRNESS_KEY_CHARS_MAX,
    FAIRNESS_WEIGHT_MAX,
    GROUP_MEMBERS_MAX,
    HANDED_PARENTS_MAX,
    HEADER_CHARS_MAX,
    HEADER_NAME_CHARS_MAX,
    ID_CHARS_MAX,
    INTENT_HEADERS_MAX,
    KEY_CHARS_MAX,
    LIMITS_MAX,
    NAME_CHARS_MAX,
    PAYLOAD_BYTES_MAX,
    PRIORITY_MAX,
    RATE_MAX,
    RETRY_DELAY_MS_MAX,
    SCHEDULE_ID_CHARS_MAX,
    SCHEDULE_PAYLOAD_BYTES_MAX,
    SKIP_DATES_MAX,
    TAG_CHARS_MAX,
    TAGS_MAX,
    TERMS_BYTES_MAX,
    TIME_MS_MAX,
    URL_CHARS_MAX,
)
from duetime.protocol.command import Command, Patch, PutSchedule, Revive, SetLane
from duetime.protocol.first_argument import FirstArgument, prepended
from duetime.protocol.intent import Item, Ties
from duetime.protocol.schedule import Schedule
from duetime.protocol.terms import (
    AckLevel,
    Bare,
    Callback,
    Claim,
    Entity,
    Limit,
    Redelivery,
    Stream,
    Target,
    Task,
    Terms,
    Until,
)

__all__ = [
    "ERROR_CHARS_MAX",
    "NOT_REPLICATED",
    "PAYLOAD_BYTES_MAX",
    "RETRY_DELAY_MS_MAX",
    "TIME_MS_MAX",
    "claim",
    "command",
    "item",
    "redelivery",
    "terms",
    "unreadable",
]

NOT_REPLICATED = "The ack REPLICATED is refused: there is no replicated log engine here. Use DURABLE."
"""The same reason at every entry point: there is no replicated log engine."""

_ID = re.compile(r"[A-Za-z0-9_.:-]+")
# Ids that an intent may wait for, including ids made by schedules.
_PARENT = re.compile(r"[A-Za-z0-9_.:@-]+")
_HEADER = re.compile(rf"[A-Za-z0-9_.-]{{1,{HEADER_NAME_CHARS_MAX}}}")


def item(item: Item) -> str | None:
    """The first problem of a new intent."""
    problem = unreadable(item, Item)
    if problem is not None:
        return problem
    if not _ID.fullmatch(item.id) or len(item.id) > ID_CHARS_MAX:
        return f"The id {item.id!r} must be 1 to {ID_CHARS_MAX} letters, digits or one of _ . : -"
    for name, value in (("execute_at", item.execute_at_ms), ("deadline", item.deadline_ms)):
        if not 0 <= value <= TIME_MS_MAX:
            return f"{name} is {value} ms since 1970, which is out of range."
    if item.key is not None and not 1 <= len(item.key) <= KEY_CHARS_MAX:
        return f"The idempotency key must have 1 to {KEY_CHARS_MAX} characters."
    if len(item.after) > AFTER_MAX:
        return f"after names {len(item.after)} intents; {AFTER_MAX} are allowed."
    for id in item.after:
        if not _PARENT.fullmatch(id) or len(id) > ID_CHARS_MAX:
            return f"after names {id[:ID_CHARS_MAX]!r}, which is not an id."
    if not 0 <= item.expected_ms <= EXPECTED_MS_MAX:
        return f"expected_ms is {item.expected_ms}, which is out of range: {EXPECTED_MS_MAX} at most."
    if item.traceparent is not None and len(item.traceparent) > NAME_CHARS_MAX:
        return f"The traceparent must have at most {NAME_CHARS_MAX} characters."
    problem = _headers(item.headers) if item.headers else None
    return problem or (_ties(item, item.ties) if item.ties is not None else None)


def _headers(headers: dict[str, str]) -> str | None:
    """The first problem of an intent's headers."""
    if len(headers) > INTENT_HEADERS_MAX:
        return f"There are {len(headers)} headers; {INTENT_HEADERS_MAX} are allowed."
    for name, value in headers.items():
        if not _HEADER.fullmatch(name):
            return (
                f"The header name {name[:HEADER_NAME_CHARS_MAX]!r} must be 1 to {HEADER_NAME_CHARS_MAX}"
                " letters, digits or one of _ . -"
            )
        if len(value) > HEADER_CHARS_MAX:
            return f"The header {name} has {len(value)} characters; {HEADER_CHARS_MAX} are allowed."
    return None


def _ties(item: Item, ties: Ties) -> str | None:
    problem = claim(ties.claim) if ties.claim is not None else None
    return problem or _group(item, ties) or _after(item, ties)


def _after(item: Item, ties: Ties) -> str | None:
    """The first problem of what an intent gets from its dependencies."""
    if not ties.delay_ms and ties.first is FirstArgument.NONE:
        return None
    if not item.after and not ties.members:
        return "A delay after dependencies, or an argument from them, needs `after`."
    if not 0 <= ties.delay_ms <= RETRY_DELAY_MS_MAX:
        return f"A delay of {ties.delay_ms} ms after the dependencies is out of range: a year at most."
    if ties.first is FirstArgument.NONE:
        return None
    if ties.first is FirstArgument.RESULT and ties.members:
        return "The callback of a group gets the RESULTS of its members as its first argument, not a RESULT."
    if ties.first is FirstArgument.RESULTS and ties.members > HANDED_PARENTS_MAX:
        return (
            f"The results of {ties.members} members are too many for an argument;"
            f" {HANDED_PARENTS_MAX} are allowed. Read them with parents()."
        )
    if prepended(item.payload, b"null") is None:
        return "The payload must be [[arguments], {names}]: its first argument comes from the dependencies."
    return None


def _group(item: Item, ties: Ties) -> str | None:
    """The first problem of a member or a callback of a group."""
    if ties.group is None and not ties.members:
        return None
    if not 0 <= ties.members <= GROUP_MEMBERS_MAX:
        return f"A group of {ties.members} members is out of range: {GROUP_MEMBERS_MAX} at most."
    if item.key is not None or ties.claim is not None:
        return "A member or a callback of a group cannot have a key; its id identifies it."
    if ties.members and item.after:
        return "The callback of a group cannot have `after`; give `after` to its members."
    if ties.group is not None and (not _ID.fullmatch(ties.group) or len(ties.group) > ID_CHARS_MAX):
        return f"group names {ties.group[:ID_CHARS_MAX]!r}, which is not an id."
    return None


def claim(claim: Claim) -> str | None:
    """The first problem of an intent's claim."""
    what = "collapse key" if claim.collapses else "unique key"
    if not 1 <= len(claim.key) <= KEY_CHARS_MAX:
        return f"The {what} must have 1 to {KEY_CHARS_MAX} characters."
    if (claim.until is Until.TIME) != bool(claim.for_ms):
        return "unique needs a duration if, and only if, it lasts for a time."
    if not 0 <= claim.for_ms <= RETRY_DELAY_MS_MAX:
        return f"unique for {claim.for_ms} ms is out of range: a year at most."
    return None


def unreadable(thing: object, kind: object) -> str | None:
    """Why an object could be written on the log but not read again: a wrong type, or invalid text."""
    try:
        msgspec.msgpack.decode(msgspec.msgpack.encode(thing), type=kind)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
        return f"It cannot be stored: {error}."
    return None


def command(command: Command) -> str | None:
    """The first problem of a command from a caller."""
    problem = unreadable(command, Command)
    if problem is not None:
        return problem
    if isinstance(command, SetLane):
        given = command.settings
        return numbers(given.rate, given.period_ms, given.burst, given.concurrency)
    if isinstance(command, PutSchedule):
        return schedule(command.schedule)
    if not isinstance(command, Patch | Revive):
        return None
    payload = command.payload
    if payload is not None and len(payload) > PAYLOAD_BYTES_MAX:
        return f"The payload has {len(payload)} bytes; {PAYLOAD_BYTES_MAX} are allowed."
    for name, value in (("execute_at", command.execute_at_ms), ("deadline", command.deadline_ms)):
        if value is not None and not 0 <= value <= TIME_MS_MAX:
            return f"{name} is {value} ms since 1970, which is out of range."
    problem = redelivery(command.redelivery) if command.redelivery is not None else None
    if isinstance(command, Revive):
        return problem or (_target(command.target) if command.target is not None else None)
    if command.priority is not None and abs(command.priority) > PRIORITY_MAX:
        return f"The priority {command.priority} is out of range: {PRIORITY_MAX} at most."
    return problem or _tags(command.tags)


def terms(terms: Terms) -> str | None:
    """The first problem of an intent's terms."""
    problem = (
        unreadable(terms, Terms) or _target(terms.target) or redelivery(terms.redelivery) or _tags(terms.tags)
    )
    if problem is None and terms.ack is AckLevel.REPLICATED:
        problem = NOT_REPLICATED
    if problem is None and terms.limits:
        problem = limits(terms.limits)
        if terms.serial:
            problem = "An entity runs one at a time, in order; its messages have no other limits."
    if problem is not None:
        return problem
    if abs(terms.priority) > PRIORITY_MAX:
        return f"The priority {terms.priority} is out of range: {PRIORITY_MAX} seconds of head start at most."
    for name, value in (("timeout", terms.timeout_ms), ("lease", terms.lease_ms)):
        if not 1 <= value <= RETRY_DELAY_MS_MAX:
            return f"The {name} of {value} ms is out of range: 1 to {RETRY_DELAY_MS_MAX}."
    if terms.fairness_key is not None or terms.fairness_weight != 1:
        problem = _fairness(terms)
        if problem is not None:
            return problem
    if not 0 <= terms.result_ttl_ms <= RETRY_DELAY_MS_MAX:
        return f"The result TTL must be at most {RETRY_DELAY_MS_MAX} ms, not {terms.result_ttl_ms}."
    if not 0 <= terms.expires_ms <= RETRY_DELAY_MS_MAX:
        return f"The relative deadline of {terms.expires_ms} ms is out of range: 1 to {RETRY_DELAY_MS_MAX}."
    size = len(msgspec.msgpack.encode(terms))
    if size > TERMS_BYTES_MAX:
        return f"Target, tags and options take {size} bytes; {TERMS_BYTES_MAX} are allowed."
    return None


def _fairness(terms: Terms) -> str | None:
    """The first problem of an intent's fairness key and weight."""
    if terms.fairness_key is None:
        return "A fairness weight is given without a fairness key."
    if not 1 <= len(terms.fairness_key) <= FAIRNESS_KEY_CHARS_MAX:
        return f"The fairness key must have 1 to {FAIRNESS_KEY_CHARS_MAX} characters."
    if not 1 <= terms.fairness_weight <= FAIRNESS_WEIGHT_MAX:
        return f"The fairness weight must be from 1 to {FAIRNESS_WEIGHT_MAX}, not {terms.fairness_weight}."
    if terms.serial:
        return "An entity runs one at a time, in order; its messages have no fairness key."
    return None


def schedule(schedule: Schedule) -> str | None:
    """The first problem of a schedule. The calendar checks whether the rule and the zone are valid."""
    if not _ID.fullmatch(schedule.id) or len(schedule.id) > SCHEDULE_ID_CHARS_MAX:
        return f"A schedule's id must be 1 to {SCHEDULE_ID_CHARS_MAX} letters, digits or one of _ . : -"
    if bool(schedule.cron) == bool(schedule.every_ms):
        return "A schedule has exactly one of cron and every."
    if len(schedule.cron) > CRON_CHARS_MAX or len(schedule.zone) > NAME_CHARS_MAX:
        return f"cron must have at most {CRON_CHARS_MAX} characters, and zone {NAME_CHARS_MAX}."
    if schedule.every_ms and not EVERY_MS_MIN <= schedule.every_ms <= RETRY_DELAY_MS_MAX:
        return f"every {schedule.every_ms} ms is out of range: {EVERY_MS_MIN} ms to a year."
    if not 0 <= schedule.jitter_ms <= DAY_MS:
        return f"The jitter of {schedule.jitter_ms} ms is out of range: a day at most."
    for name, value in (("start", schedule.start_ms), ("end", schedule.end_ms)):
        if not 0 <= value <= TIME_MS_MAX:
            return f"{name} is {value} ms since 1970, which is out of range."
    if schedule.end_ms and schedule.end_ms < schedule.start_ms:
        return "The end is before the start."
    if len(schedule.skip) > SKIP_DATES_MAX:
        return f"skip has {len(schedule.skip)} dates; {SKIP_DATES_MAX} are allowed."
    if not 1 <= schedule.catch_up <= CATCH_UP_MAX:
        return f"catch_up must be from 1 to {CATCH_UP_MAX}."
    if len(schedule.payload) > SCHEDULE_PAYLOAD_BYTES_MAX:
        size = len(schedule.payload)
        return f"The payload has {size} bytes; a schedule's may have {SCHEDULE_PAYLOAD_BYTES_MAX}."
    return terms(schedule.terms)


def limits(limits: tuple[Limit, ...]) -> str | None:
    """The first problem of an intent's limits."""
    if len(limits) > LIMITS_MAX:
        return f"{len(limits)} limits are given; {LIMITS_MAX} are allowed."
    if len({limit.key for limit in limits}) < len(limits):
        return "Two limits have the same key."
    for limit in limits:
        if not 1 <= len(limit.key) <= KEY_CHARS_MAX:
            return f"The key of a limit must have 1 to {KEY_CHARS_MAX} characters."
        if not (limit.rate or limit.concurrency):
            return f"The limit {limit.key!r} has neither a rate nor a concurrency."
        problem = numbers(limit.rate, limit.period_ms, limit.burst, limit.concurrency)
        if problem is not None:
            return f"The limit {limit.key!r}: {problem}"
    return None


def numbers(rate: int, period_ms: int, burst: int, concurrency: int) -> str | None:
    """The first problem of a rate and a concurrency."""
    if not 0 <= rate <= RATE_MAX:
        return f"the rate must be from 1 to {RATE_MAX}."
    if not 1 <= period_ms <= DAY_MS:
        return f"the period of {period_ms} ms is out of range: a day at most."
    if not 1 <= burst <= RATE_MAX:
        return f"the burst must be from 1 to {RATE_MAX}."
    if not 0 <= concurrency <= RATE_MAX:
        return f"the concurrency must be from 1 to {RATE_MAX}."
    return None


def redelivery(policy: Redelivery) -> str | None:
    """The first problem of a retry policy."""
    if not 1 <= policy.max_attempts <= ATTEMPTS_MAX:
        return f"max_attempts must be from 1 to {ATTEMPTS_MAX}, not {policy.max_attempts}."
    if not 0 <= policy.initial_delay_ms <= RETRY_DELAY_MS_MAX:
        return f"The initial delay of {policy.initial_delay_ms} ms is out of range."
    if not 0 <= policy.max_delay_ms <= RETRY_DELAY_MS_MAX:
        return f"The longest delay of {policy.max_delay_ms} ms is out of range."
    if not 100 <= policy.multiplier_percent <= 100_000:
        return "The multiplier must be from 1 to 1000."
    return None


def _target(target: Target) -> str | None:
    names: tuple[tuple[str, str], ...] = ()
    match target:
        case Task(name, queue):
            names = (("task", name), ("queue", queue))
        case Entity(kind, id, message):
            if "/" in kind:
                return f"The entity type {kind!r} must not have a / in it."
            names = (("entity type", kind), ("entity id", id), ("message", message))
        case Stream(name):
            names = (("stream", name),)
        case Callback(url):
            if not 1 <= len(url) <= URL_CHARS_MAX:
                return f"The callback's url must have 1 to {URL_CHARS_MAX} characters."
            if len(target.on_end) > URL_CHARS_MAX:
                return f"The callback's on_end must have at most {URL_CHARS_MAX} characters."
        case Bare():
            pass
    for what, name in names:
        if not 1 <= len(name) <= NAME_CHARS_MAX:
            return f"The {what} must have 1 to {NAME_CHARS_MAX} characters."
    return None


def _tags(tags: dict[Any, Any] | None) -> str | None:
    if not tags:
        return None
    if len(tags) > TAGS_MAX:
        return f"{len(tags)} tags are given; {TAGS_MAX} are allowed."
    for key, value in tags.items():
        if not (isinstance(key, str) and isinstance(value, str)):
            return f"The tag {key!r} must be text, and so must its value."
        if not 1 <= len(key) <= TAG_CHARS_MAX or len(value) > TAG_CHARS_MAX:
            return f"The tag {key!r} or its value is longer than {TAG_CHARS_MAX} characters."
    return None
