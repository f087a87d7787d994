"""Why an intent has not run yet, or how it ended: a code, one sentence for people, and the data behind it.

The kernel knows no dates: sentences say how long from now or how long ago, and moments are in the data
under names that end in `_at_ms`, so that each reader can format them in its own way.
"""

from __future__ import annotations

from duetime.duration_text import span
from duetime.kernel.claims import REPLACED
from duetime.kernel.history import UNNEEDED, limited
from duetime.kernel.queues.entity_types import type_of
from duetime.kernel.queues.lanes import Lane
from duetime.kernel.state import State
from duetime.limits import HOST_SHARE, REASON_NAMES_MAX, TIER_NAMES
from duetime.protocol.intent import (
    ACKED,
    BLOCKED,
    CANCELED,
    DISPATCHING,
    DUE,
    EXPIRED,
    FINAL,
    SCHEDULED,
    Intent,
    Rare,
)
from duetime.protocol.terms import PACKED_LANE, AfterOn
from duetime.protocol.view import Why

Data = dict[str, object]

_NO_RARE = Rare()
_WANTED = {AfterOn.SUCCESS: "be acknowledged", AfterOn.END: "end", AfterOn.FAILURE: "fail"}


def why(state: State, intent: Intent, now_ms: int) -> Why:
    """Why it has not run yet, or how it ended."""
    status = intent.status
    if status is SCHEDULED:
        return _scheduled(intent, now_ms)
    if status is DUE:
        return _due(state, intent, now_ms)
    if status is DISPATCHING:
        return _running(state, intent, now_ms)
    if status is BLOCKED:
        return _blocked(state, intent, now_ms)
    return _ended(intent, now_ms)


# It waits for a moment.


def _scheduled(intent: Intent, now_ms: int) -> Why:
    wake_at_ms = intent.wake_at_ms
    wait_ms = max(0, wake_at_ms - now_ms)
    data: Data = {"wake_at_ms": wake_at_ms, "wait_ms": wait_ms}
    when = f"in {span(wait_ms)}" if wait_ms else "now"
    rare = intent.rare if intent.rare is not None else _NO_RARE
    expires = 0 < intent.deadline_ms <= wake_at_ms
    code, before, after = "waiting-for-time", "Its time has not come", f"it is due {when}"
    if (delay_ms := _delay_after(intent, rare)) > 0:
        data["delay_ms"] = delay_ms
        before = f"It runs {span(delay_ms)} after the end of what it waited for"
    put_off = _put_off(intent, rare)
    if put_off:
        code, before, after = "snoozed", f"It was {put_off}", f"it is due again {when}"
    elif rare.last_error is not None and intent.attempt:
        error, most = rare.last_error, intent.terms.redelivery.max_attempts
        data |= {"attempts": intent.attempt, "failed_at_ms": error.at_ms, "kind": error.kind}
        code = "waiting-for-retry"
        before = (
            f"Attempt {intent.attempt} of {most} failed {_ago(error.at_ms, now_ms)}"
            f" ({error.kind}: {error.message})"
        )
        after = f"attempt {intent.attempt + 1} is due {when}"
    if expires:
        data["deadline_at_ms"] = intent.deadline_ms
        after = f"its deadline comes first, and it expires {when}"
    return Why(code, f"{before}; {after}.", data)


def _put_off(intent: Intent, rare: Rare) -> str:
    """What its history tells about the newest delivery, if that was postponed."""
    for entry in reversed(rare.history or ()):
        if entry.note != "patched":
            snoozed = entry.delivery == intent.delivery and entry.note.startswith("snoozed")
            return entry.note if snoozed else ""
    return ""


def _delay_after(intent: Intent, rare: Rare) -> int:
    """Its delay after the end of its dependencies, if that is what it waits for."""
    delay_ms = rare.ties.delay_ms if rare.ties is not None else 0
    if not delay_ms or not rare.history or rare.history[-1].at_ms + delay_ms != intent.execute_at_ms:
        return 0
    return delay_ms


def _blocked(state: State, intent: Intent, now_ms: int) -> Why:
    rare = intent.rare if intent.rare is not None else _NO_RARE
    wanted = _WANTED[intent.terms.after_on]
    data: Data
    if rare.ties is not None and rare.ties.members:
        members = rare.ties.members
        data = {"members": members, "joined": rare.joined, "left": rare.waiting}
        left = "one" if intent.terms.after_on is AfterOn.FAILURE else rare.waiting
        text = f"It waits for {left} of its {_count(members, 'member')} to {wanted}"
        if rare.joined < members:
            missing = members - rare.joined
            text += f"; {missing} {'has' if missing == 1 else 'have'} not been submitted yet"
    else:
        waits = {id: parent.status for id in rare.after if (parent := _unfinished(state, id)) is not None}
        named = _listed([f"{id!r} ({status.name})" for id, status in waits.items()])
        data = {"after": list(waits)}
        one_of = "one of " if intent.terms.after_on is AfterOn.FAILURE and len(waits) > 1 else ""
        text = f"It waits for {one_of}{_count(len(waits), 'other intent')} to {wanted}: {named}"
    if rare.ties is not None and rare.ties.delay_ms:
        data["delay_ms"] = rare.ties.delay_ms
        text += f"; it runs {span(rare.ties.delay_ms)} after that"
    if intent.deadline_ms:
        data["deadline_at_ms"] = intent.deadline_ms
        text += f"; it expires in {span(intent.deadline_ms - now_ms)}"
    return Why("blocked", f"{text}.", data)


def _unfinished(state: State, id: str) -> Intent | None:
    """The intent if it has not ended. A missing one has ended, and no longer needs to be waited for;
    otherwise its dependents would not be waiting."""
    parent = state.store.get(id)
    return None if parent is None or parent.status in FINAL else parent


# It could go, and does not.


def _due(state: State, intent: Intent, now_ms: int) -> Why:
    lane = state.lanes[intent.terms.lane]
    data: Data = {"lane": lane.name, "due_at_ms": intent.due_at_ms}
    code, text = _held_up(state, intent, lane, data)
    text += _turns(intent, lane, data)
    text += f" It has been due for {span(now_ms - intent.due_at_ms)}"
    if intent.deadline_ms:
        data["deadline_at_ms"] = intent.deadline_ms
        text += f", and expires in {span(intent.deadline_ms - now_ms)}"
    return Why(code, f"{text}.", data)


def _turns(intent: Intent, lane: Lane, data: Data) -> str:
    """Where keys take turns: how many intents of its own key wait. Those of other keys hardly delay it."""
    key, shares = intent.terms.fairness_key, lane.track(intent.terms.tier).shares
    if key is None or shares is None:
        return ""
    due = shares.due(key)
    data |= {"fairness_key": key, "due_of_key": due}
    return f" Keys take turns in its lane; {due} of {key!r} {'is' if due == 1 else 'are'} due."


def _held_up(state: State, intent: Intent, lane: Lane, data: Data) -> tuple[str, str]:
    if state.draining:
        return "draining", "The engine is stopping and starts no deliveries; it runs after the next start."
    if lane.paused:
        return "paused", f"Its lane {lane.name!r} is paused."
    if lane.holder is not None and lane.holder is not intent:
        holder = data["held_by"] = lane.holder.id
        status = lane.holder.status.name
        return (
            "entity-busy",
            f"It waits for {holder!r} ({status}): its entity runs one message at a time, in order.",
        )
    if intent.waits:
        return _limited(state, intent, data)
    if not lane.pushed:
        return _not_asked_for(state, lane, data)
    return _no_permit(state, intent, lane, data)


def _limited(state: State, intent: Intent, data: Data) -> tuple[str, str]:
    """It is parked at a limiter."""
    kind, _, name = intent.waits.partition(":")
    limiter = state.flow.limiters[intent.waits]
    data["limit"], data["running"] = name, limiter.running
    what = f"the limit {name!r}" if kind == "key" else f"the limit of its lane {name!r}"
    if not limiter.wake_ms:
        return "limited", f"It waits for {what}: the maximum number is running."
    wait_ms = max(0, limiter.wake_ms - state.flow.now_ms)
    data["next_at_ms"] = state.at_ms + wait_ms
    return "limited", f"It waits for {what}: the next start is in {span(wait_ms)}."


def _not_asked_for(state: State, lane: Lane, data: Data) -> tuple[str, str]:
    """A consumer must ask for intents of a lane like this."""
    if lane.turns:
        return "waiting-for-turn", "Other intents of its lane are ahead of it."
    whole = state.lanes.get(type_of(lane.name)) if lane.serial else None
    if whole is not None and whole.paused:
        return "paused", f"The lane of its type, {whole.name!r}, is paused."
    kind, _, name = lane.name.partition(":")
    who, what = _TAKERS.get(kind, ("worker", f"the lane {lane.name!r}"))
    what = what.format(name)
    if not lane.running:
        return "no-worker", f"No {who} is ready for {what}."
    busy = sorted(
        consumer
        for consumer, held in state.out.items()
        if consumer and any(intent.terms.lane == lane.name for intent in held.values())
    )
    data |= {"running": lane.running, "busy": busy}
    many = _count(lane.running, "delivery", "deliveries")
    return (
        "workers-busy",
        f"Every {who} of {what} is busy: {many} running, with {_listed([repr(b) for b in busy])}.",
    )


_TAKERS = {
    "task": ("worker", "the queue {!r}"),
    "entity": ("worker", "the entity {!r}"),
    "stream": ("subscriber", "the stream {!r}"),
}


def _no_permit(state: State, intent: Intent, lane: Lane, data: Data) -> tuple[str, str]:
    tier = state.tiers.all[intent.terms.tier]
    track = lane.track(intent.terms.tier)
    name = TIER_NAMES[intent.terms.tier]
    data |= {"permits_max": tier.max, "used": tier.used}
    if lane.polite and tier.used < tier.max and tier.held_back(track):
        free, share = tier.max - tier.used, tier.share
        data |= {"out": track.out, "free": free, "share_max": share}
        out = f"{_count(track.out, 'callback')} of {name} to {_host(lane)} {_are(track.out)} under way"
        left = f"{free} of its {_count(tier.max, 'permit')} {_are(free)} left to other hosts"
        rule = f"one host takes at most {HOST_SHARE} times what is free, alone {share} of {tier.max}"
        return "host-busy", f"{out}, and {left}: {rule}."
    if tier.used < tier.max:
        return "waiting-for-turn", "Other intents are ahead of it."
    lent = f", {tier.lent} of them lent to higher tiers" if tier.lent else ""
    return "no-permit", f"All {tier.max} permits of {name} are in use{lent}."


def _host(lane: Lane) -> str:
    return lane.name.removeprefix("callback:").removesuffix(PACKED_LANE)


# It runs, or has ended.


def _running(state: State, intent: Intent, now_ms: int) -> Why:
    since_ms = intent.dispatched_at_ms
    data: Data = {"delivery": intent.delivery, "attempt": intent.attempt, "started_at_ms": since_ms}
    most = intent.terms.redelivery.max_attempts
    numbers = f"delivery {intent.delivery}, attempt {intent.attempt} of {most}"
    if waited := limited(intent):
        data["limited_ms"] = intent.limited_ms
        numbers += f", {waited} before"
    ran = span(now_ms - since_ms)
    who = intent.consumer
    if not who:
        lane = state.lanes[intent.terms.lane]
        where = f"on its way to {_host(lane)}" if lane.polite else "run by this engine"
        return Why("running", f"It has been {where} for {ran} ({numbers}).", data)
    data["consumer"] = who
    # While the worker is silent: every sign of life restarts the lease.
    until_ms = max(since_ms, state.consumers[who].seen_at_ms) + intent.terms.lease_ms
    data["lease_ends_at_ms"] = until_ms
    lease = f"its lease ends in {span(until_ms - now_ms)} unless {who!r} sends a heartbeat"
    return Why("running", f"It has been with {who!r} for {ran} ({numbers}); {lease}.", data)


def _ended(intent: Intent, now_ms: int) -> Why:
    at_ms, status = intent.finished_at_ms, intent.status
    data: Data = {"finished_at_ms": at_ms, "attempts": intent.attempt, "delivery": intent.delivery}
    ago = _ago(at_ms, now_ms)
    if status is ACKED:
        late_ms = data["late_ms"] = intent.late_ms
        text = f"It was acknowledged {ago}, on attempt {intent.attempt}"
        text += f"; it started {span(max(0, late_ms))} after its time"
        if intent.limited_ms:
            data["limited_ms"] = intent.limited_ms
            text += f", and {span(intent.limited_ms)} more for a limit, a pause or its entity"
        return Why("acked", f"{text}.", data)
    rare = intent.rare if intent.rare is not None else _NO_RARE
    if status is CANCELED:
        last = rare.history[-1].note if rare.history else ""
        if last.startswith(REPLACED):
            by = data["replaced_by"] = last.removeprefix(REPLACED)
            return Why(
                "replaced", f"{by!r} replaced it {ago}, before it ran: both have the same collapse key.", data
            )
        if last.startswith(UNNEEDED):
            return Why("not-needed", f"It was cancelled {ago}, {last}.", data)
        tried = f" after {_count(intent.attempt, 'attempt')}" if intent.attempt else ", before it ran"
        return Why("canceled", f"It was cancelled {ago}{tried}.", data)
    error = rare.last_error
    assert error is not None, "an expired intent or a dead letter has its reason"
    data["kind"] = error.kind
    if status is EXPIRED:
        return Why("expired", f"It expired {ago}: {error.message}.", data)
    tried = f"after {_count(intent.attempt, 'attempt')}" if intent.attempt else "before it ran"
    ago = _ago(error.at_ms, now_ms)
    return Why(
        "dead-lettered", f"It became a dead letter {ago}, {tried}: {error.message} ({error.kind}).", data
    )


# Words.


def _ago(at_ms: int, now_ms: int) -> str:
    return f"{span(now_ms - at_ms)} ago"


def _count(number: int, one: str, more: str = "") -> str:
    return f"{number} {one if number == 1 else more or one + 's'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _listed(names: list[str]) -> str:
    rest = len(names) - REASON_NAMES_MAX
    return ", ".join(names[:REASON_NAMES_MAX]) + (f" and {rest} more" if rest > 0 else "")
