"""Results of dependencies for the intent that runs after them. Owns `Rare.handed`.

They are copied when the intent is released: later, a dependency may be forgotten. Each delivery carries them:
as the first argument of a function, or in the body of a webhook.
"""

from __future__ import annotations

import msgspec

from duetime.kernel.history import rare_of, unneeded
from duetime.kernel.state import State
from duetime.limits import HANDED_BYTES_MAX, HANDED_PARENTS_MAX
from duetime.protocol.first_argument import FirstArgument, prepended
from duetime.protocol.intent import ACKED, FINAL, Error, Intent, Rare, member_id
from duetime.protocol.terms import AfterOn, Callback
from duetime.protocol.view import result_gone

_NULL = b"null"


def collect(state: State, intent: Intent, failed: Intent | None) -> Error | None:
    """Copy what the intent wants of its dependencies. Returns the error if that is impossible. `failed`: the
    dependency whose failure releases it."""
    rare = rare_of(intent)
    target = intent.terms.target
    if type(target) is Callback:
        if target.parents:
            rare.handed = _parents(state, intent, rare)
        return None
    match rare.ties.first if rare.ties is not None else FirstArgument.NONE:
        case FirstArgument.RESULT:
            id = rare.after[-1]
            rare.handed = _result(state, state.store.get(id))
            if rare.handed is None:
                return Error(state.at_ms, 0, "dependency", f"the result of {id!r} is no longer stored")
        case FirstArgument.RESULTS:
            rare.handed = _results(state, intent, rare)
            if rare.handed is None:
                text = f"the results have more than {HANDED_BYTES_MAX} bytes; read them with parents()"
                return Error(state.at_ms, 0, "too-large", text)
        case FirstArgument.FAILURE:
            failed = failed or _first_failed(state, intent, rare)
            rare.handed = _NULL if failed is None else _failure(failed)
    return None


def missing(state: State, intent: Intent) -> str | None:
    """A dead letter is revived: if it was never released, it gets the results now. Returns what it lacks."""
    rare = intent.rare
    if rare is None or rare.handed is not None:
        return None
    if (
        rare.ties is not None
        and rare.ties.first is FirstArgument.RESULT
        and intent.terms.after_on is AfterOn.SUCCESS
    ):
        parent = state.store.get(rare.after[-1])
        if parent is not None and parent.status is not ACKED:
            return f"{parent.id!r}, whose result it needs, is {parent.status.name}"
    error = collect(state, intent, None)
    return None if error is None else error.message


def carried(intent: Intent, handed: bytes) -> tuple[bytes, bytes | None]:
    """The payload of a delivery, and the parents in the body of a webhook."""
    if type(intent.terms.target) is Callback:
        return intent.payload, handed
    return prepended(intent.payload, handed) or intent.payload, None


def _result(state: State, parent: Intent | None) -> bytes | None:
    """The result of a dependency; None if it is not stored any more."""
    if parent is None or result_gone(parent, state.at_ms):
        return None
    result = parent.rare.result if parent.rare is not None else None
    return _NULL if result is None else result


def _ids(intent: Intent, rare: Rare) -> tuple[str, ...]:
    """Its dependencies, or the members of its group, in order."""
    if rare.ties is not None and rare.ties.members:
        return tuple(member_id(intent.id, number) for number in range(min(rare.joined, HANDED_PARENTS_MAX)))
    return rare.after


def _results(state: State, intent: Intent, rare: Rare) -> bytes | None:
    """The results as a list; None if they are too large."""
    found: list[bytes] = []
    room = HANDED_BYTES_MAX
    for id in _ids(intent, rare):
        result = _result(state, state.store.get(id)) or _NULL
        found.append(result)
        room -= len(result) + 1
        if room < 0:
            return None
    return b"[%b]" % b",".join(found)


def _parents(state: State, intent: Intent, rare: Rare) -> bytes:
    """The members `parents` and `moreParents` of a webhook's body."""
    found: list[bytes] = []
    room = HANDED_BYTES_MAX
    ids = _ids(intent, rare)
    more = rare.joined > len(ids)
    for id in ids:
        parent = state.store.get(id)
        status = _NULL if parent is None else b'"%b"' % parent.status.name.encode()
        each = b'{"intentId":%b,"status":%b,"result":%b}' % (
            msgspec.json.encode(id),
            status,
            _result(state, parent) or _NULL,
        )
        room -= len(each) + 1
        if room < 0:
            more = True
            break
        found.append(each)
    return b'"parents":[%b],"moreParents":%b' % (b",".join(found), b"true" if more else b"false")


def _first_failed(state: State, intent: Intent, rare: Rare) -> Intent | None:
    for id in _ids(intent, rare):
        parent = state.store.get(id)
        if (
            parent is not None
            and parent.status in FINAL
            and parent.status is not ACKED
            and not unneeded(parent)
        ):
            return parent
    return None


def _failure(failed: Intent) -> bytes:
    """The dependency that failed, as the first argument of a function."""
    error = failed.rare.last_error if failed.rare is not None else None
    return msgspec.json.encode(
        {
            "intentId": failed.id,
            "status": failed.status.name,
            "kind": "" if error is None else error.kind,
            "message": "" if error is None else error.message,
        }
    )
