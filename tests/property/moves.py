"""Small numbers become commands: a few ids, keys, lanes and permits, so that everything meets."""

from __future__ import annotations

from hypothesis import strategies as st

from duetime.kernel.state import State
from duetime.limits import DAY_MS
from duetime.protocol.command import (
    Advance,
    Beat,
    Cancel,
    Command,
    Configure,
    Demand,
    Drain,
    FireNow,
    Leap,
    Leave,
    Patch,
    Pause,
    Resize,
    Resume,
    Revive,
    Settings,
    Settle,
    Start,
    Submit,
)
from duetime.protocol.intent import Item
from duetime.protocol.outcome import Done, Failed, Lost, Outcome, Rejected, Settlement, Snoozed
from duetime.protocol.terms import (
    Entity,
    ExpiredAction,
    Guarantee,
    OnDuplicate,
    Redelivery,
    Stream,
    Target,
    Task,
    Terms,
    lane_of,
)

Move = tuple[int, int, int, int]
moves: st.SearchStrategy[list[Move]] = st.lists(
    st.tuples(st.integers(0, 31), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
    min_size=1,
    max_size=120,
)

TARGETS: tuple[Target, ...] = (
    Task("work"),
    Task("work", "q"),
    Stream("s"),
    Entity("cart", "1", "add"),
    Entity("cart", "2", "add"),
)
DELAYS = (0, 0, 10, 100, 110, 1_000, 60_000, 3_600_000, DAY_MS, -4_000)
STEPS = (0, 1, 10, 49, 50, 100, 1_000, 60_000, 4_000_000, 2 * DAY_MS)
LANES = tuple(lane_of(target) for target in TARGETS)
PATIENT = Redelivery(max_attempts=3, initial_delay_ms=50)
SETTINGS = (
    Settings(),
    Settings(lane_pending_max=4, entity_pending_max=2, retention_ms=0, key_window_ms=60_000),
    Settings(pushed=("entity",), retention_count=0, dead_letter_retention_ms=60_000),
    Settings(pushed=(), pending_max=6, entities_max=1),
)


def step_of(move: Move) -> int:
    """How much time passes before a move; now and then it goes back."""
    kind, a, b, c = move
    return -STEPS[b] if (kind + a + c) % 17 == 0 else STEPS[(kind * 7 + b) % 10 if c < 3 else c % 4]


def command_of(move: Move, state: State, now_ms: int) -> Command:
    kind, a, b, c = move
    id = f"i{a}"
    if kind < 10:
        return Submit((_terms(b, c, kind),), _items(kind, a, b, c, now_ms))
    if kind < 18:
        return Settle(tuple(_settlement(state, f"i{n}", b) for n in (a, (a + 3) % 10)[: 1 + c % 2]))
    match kind:
        case 18:
            return Cancel(id)
        case 19:
            return FireNow(id)
        case 20:
            target = TARGETS[b % 5] if c % 2 else None
            return Revive(id, target=target, execute_at_ms=now_ms + DELAYS[c] if c > 5 else 0)
        case 21 | 22:
            return _patch(id, b, c, now_ms)
        case 23 | 24 | 25:
            return Demand(f"w{a % 2}", LANES[b % 5], c % 4, c < 6)
        case 26:
            return (
                Beat(f"w{a % 2}") if c < 7 else Leap((STEPS[b], -STEPS[b], 0)[a % 3], (0, 800, 6_000)[c % 3])
            )
        case 27:
            return Leave(f"w{a % 2}")
        case 28:
            return Pause(LANES[b % 5]) if c < 4 else Resume(LANES[b % 5])
        case 29:
            return Resize(a % 5, 1 + b % 3)
        case 30:
            return Configure(SETTINGS[b % 4]) if c < 5 else Start(state.epoch + 1)
        case _:
            return Drain() if (a, b % 2) == (9, 0) else Advance()


def _terms(b: int, c: int, kind: int) -> Terms:
    target = TARGETS[b % 5]
    return Terms(
        target,
        lane_of(target),
        tier=(0, 3, 4)[c % 3],  # type: ignore[arg-type]
        priority=(0, 0, 5, -5)[kind % 4],
        redelivery=PATIENT,
        lease_ms=2_000,
        guarantee=Guarantee.AT_MOST_ONCE if b == 9 else Guarantee.AT_LEAST_ONCE,
        expired_action=ExpiredAction(c % 2),
    )


def _items(kind: int, a: int, b: int, c: int, now_ms: int) -> tuple[Item, ...]:
    at_ms = now_ms + DELAYS[c]
    return tuple(
        Item(
            f"i{(a + n) % 10}",
            0,
            at_ms,
            payload=bytes((kind, a)),
            deadline_ms=at_ms + 120 * b if kind in (2, 5) else 0,
            key=f"k{b % 3}" if kind in (3, 5) else None,
            fingerprint=c % 2,
            on_duplicate=OnDuplicate(a % 3),
            after=tuple(f"i{(a + n + 1 + m) % 10}" for m in range(1 + b % 2)) if kind in (4, 6) else (),
        )
        for n in range(1 + kind % 3)
    )


def _settlement(state: State, id: str, b: int) -> Settlement:
    outcomes: tuple[Outcome, ...] = (
        Done(), Done(b"1"), Failed("x", "no"), Failed("x", "no", delay_ms=0), Snoozed(75),
        Rejected("x", "bad"), Lost("gone"), Done(), Failed("x", "no"), Done(),
    )  # fmt: skip
    intent = state.store.get(id)
    delivery = intent.delivery if intent is not None else 1
    holder = intent.consumer if intent is not None else ""
    return Settlement(id, delivery - (b == 7), outcomes[b], consumer="stranger" if b == 9 else holder)


def _patch(id: str, b: int, c: int, now_ms: int) -> Patch:
    return Patch(
        id,
        execute_at_ms=now_ms + DELAYS[c] if b < 5 else None,
        deadline_ms=now_ms + 100 * c if b in (1, 6) else 0 if b == 7 else None,
        priority=c if b in (2, 8) else None,
        payload=b"patched" if b % 2 else None,
    )
