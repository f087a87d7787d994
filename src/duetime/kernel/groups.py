"""Groups: many members, and a callback that runs when all of them have ended. Owns `Rare.joined`.

The callback is a blocked intent; each member names it, and there is no list of members: a group of 100,000
makes no row larger. Members are numbered in the order of joining, and the number is part of the id: each
joins once, however often it is sent. A callback's `waiting` is always its members less those that have ended.
"""

from __future__ import annotations

from msgspec.structs import replace

from duetime.kernel.history import rare_of
from duetime.kernel.lookup import forbids, out_of_reach
from duetime.kernel.state import State
from duetime.kernel.transitions import touch
from duetime.protocol.intent import BLOCKED, FINAL, Intent, Item, Ties, member_id
from duetime.protocol.reply import Existing, Reason, Refusal, Reply


def known(state: State, item: Item, ties: Ties) -> Reply:
    """What an earlier, identical request created, or None. The id of a group's part serves as its key."""
    if item.fresh or (ties.group is None and not ties.members):
        return None
    if ties.group is not None and _is_next(state, item, ties.group):
        return None  # almost always: the disk need not be read
    intent = state.store.get(item.id)
    rare = intent.rare if intent is not None else None
    if intent is None or rare is None or rare.ties != kept(ties) or rare.fingerprint != item.fingerprint:
        return None
    if ties.group is not None and callback_of(state, intent) is None:
        return None
    return Existing(intent)


def kept(ties: Ties | None) -> Ties | None:
    """The part of its ties that an intent keeps."""
    return ties if ties is None or ties.within is None else replace(ties, within=None)


def _is_next(state: State, item: Item, group: str) -> bool:
    callback = state.store.get(group)
    rare = callback.rare if callback is not None else None
    return rare is not None and item.id == member_id(group, rare.joined)


def check(state: State, item: Item, ties: Ties) -> Refusal | None:
    """Why the member cannot join: the group does not exist, or expects another member. None if it can."""
    group = ties.group
    if group is None:
        return None
    callback = state.store.get(group)
    if callback is None:
        return Refusal(Reason.INVALID_FIELD, f"`group` names {group!r}, and there is no such intent.")
    refusal = out_of_reach(callback, ties.within)
    if refusal is not None:
        return refusal
    members = _members(callback)
    if not members:
        return Refusal(
            Reason.INVALID_FIELD, f"`group` names {group!r}, which is not the callback of a group."
        )
    rare = rare_of(callback)
    if rare.joined >= members:
        return Refusal(Reason.INVALID_FIELD, f"The group {group!r} has its {members} members.")
    if callback.status is not BLOCKED:
        return forbids(callback, Reason.STATE_FORBIDS, "given more members")
    next_id = member_id(group, rare.joined)
    if item.id != next_id:
        text = f"The next member of {group!r} has the id {next_id!r}, not {item.id!r}."
        return Refusal(Reason.INVALID_FIELD, text, {"joined": rare.joined})
    return _circle(state, item, callback) if item.after else None


def _circle(state: State, item: Item, callback: Intent) -> Refusal | None:
    """A member may wait for intents older than its group, plain members of the group, and finished ones.

    Any other intent may wait, directly or through others, for the group itself: a deadlock.
    """
    outermost = callback
    while (above := callback_of(state, outermost)) is not None:
        outermost = above
    for id in item.after:
        parent = state.store.get(id)
        if parent is None or parent.status in FINAL or parent.seq < outermost.seq:
            continue
        if not (_is_member(parent, callback) and not _members(parent)):
            text = f"A member of {callback.id!r} cannot come after {id!r}, which was made after the group."
            return Refusal(Reason.INVALID_FIELD, text)
    return None


def _members(intent: Intent) -> int:
    """The number of members it waits for, if it is a callback."""
    rare = intent.rare
    return rare.ties.members if rare is not None and rare.ties is not None else 0


def join(state: State, member: Intent, group: str) -> None:
    """A member was created."""
    callback = state.store.get(group)
    assert callback is not None, "checked before anything was changed"
    touch(state, callback)
    rare_of(callback).joined += 1


def callback_of(state: State, member: Intent) -> Intent | None:
    """The callback of its group, if it is a member; not a newer intent with the same id."""
    rare = member.rare
    if rare is None or rare.ties is None or rare.ties.group is None:
        return None
    callback = state.store.get(rare.ties.group)
    if callback is None or callback.seq > member.seq:
        return None
    return callback


def _is_member(member: Intent, callback: Intent) -> bool:
    rare = member.rare
    mine = rare is not None and rare.ties is not None and rare.ties.group == callback.id
    return mine and member.seq > callback.seq


def rejoin(state: State, member: Intent) -> None:
    """A dead letter is revived: it counts as not ended again."""
    callback = callback_of(state, member)
    if callback is not None:
        touch(state, callback)
        rare_of(callback).waiting += 1


def members_of(state: State, callback: Intent) -> list[Intent]:
    """The members that were created and are not forgotten, in order."""
    rare = callback.rare
    found: list[Intent] = []
    for number in range(rare.joined if rare is not None else 0):
        member = state.store.get(member_id(callback.id, number))
        if member is not None and _is_member(member, callback):
            found.append(member)
    return found
