"""Plays the commands of a story on a kernel and tells what came of them, in words.

Time is in milliseconds since the story began. Intents go to a task in the queue `mail` unless the story
says otherwise, with the default tier, and without jitter so that numbers are round.
"""

from __future__ import annotations

from collections.abc import Iterator

from duetime.kernel import invariants, query
from duetime.kernel.history import entries_of
from duetime.kernel.kernel import Kernel
from duetime.protocol import command as c
from duetime.protocol.effect import Deliver
from duetime.protocol.intent import BLOCKED, FINAL, Intent, Item, Ties
from duetime.protocol.outcome import Done, Failed, Lost, Outcome, Rejected, Settlement, Snoozed
from duetime.protocol.record import Record
from duetime.protocol.reply import Answer, Existing, Refusal
from duetime.protocol.terms import (
    AfterOn,
    Backoff,
    Bare,
    Callback,
    Claim,
    Entity,
    ExpiredAction,
    Guarantee,
    OnDuplicate,
    OnInterrupt,
    Redelivery,
    Stream,
    Target,
    Task,
    Terms,
    Tier,
    Until,
    lane_of,
)
from duetime.store.memory import MemoryStore

BEGIN_MS = 1_700_000_000_000


class Teller:
    """One story's kernel, clock and store."""

    def __init__(self) -> None:
        self.store = MemoryStore(durable=True)
        self.kernel = Kernel(self.store)
        self.now_ms = BEGIN_MS
        self.next_ms: int | None = None
        self.lines: list[str] = []
        self.apply(c.Start(1))

    def play(self, commands: list[str]) -> list[str]:
        """What these commands came to."""
        self.lines = []
        for line in commands:
            verb, *words = line.split()
            getattr(self, f"do_{verb}")(*words)
            invariants.check(self.kernel.state)
        next_ms = self.kernel.next_ms()
        if next_ms != self.next_ms:
            self.next_ms = next_ms
            self.lines.append("nothing to wait for" if next_ms is None else f"next at {next_ms - BEGIN_MS}")
        return self.lines

    def apply(self, command: c.Command) -> None:
        applied = self.kernel.apply(Record(self.kernel.state.records + 1, self.now_ms, command))
        self.lines += _answers(command, applied.answer)
        for change in applied.changes:
            if change.new in FINAL or change.new is BLOCKED:
                reason = self._reason(change.id) if change.new in FINAL else ""
                self.lines.append(f"{change.id} {change.new.name}{reason}")
            elif change.old is not None and change.old in FINAL:
                self.lines.append(f"{change.id} lives again")
        for effect in applied.effects:
            if isinstance(effect, Deliver):
                to = f" to {effect.consumer}" if effect.consumer else ""
                late = f", {effect.late_ms} ms late" if effect.late_ms else ""
                self.lines.append(
                    f"deliver {effect.id}#{effect.delivery}{to} (attempt {effect.attempt}{late})"
                )
            else:
                self.lines.append(f"abort {effect.id}#{effect.delivery}")

    def _reason(self, id: str) -> str:
        intent = self.store.get(id)
        error = intent.rare.last_error if intent is not None and intent.rare is not None else None
        if intent is None or error is None or intent.status.name not in ("DEAD_LETTERED", "EXPIRED"):
            return ""
        return f": {_relative(error.message)}"

    # Callers.

    def do_submit(self, id: str, *words: str) -> None:
        options = _options(words)
        terms = _terms(options)
        at_ms = self._time(options.pop("at", None), options.pop("in", "0"))
        deadline = options.pop("deadline", None)
        key = options.pop("key", None)
        duplicate = OnDuplicate[options.pop("duplicate", "live").upper()]
        after = tuple(options.pop("after", "").split(",")) if "after" in options else ()
        body = hash_of(options.pop("body", ""))
        ties = _ties(options)
        assert not options, f"unknown options: {options}"
        deadline_ms = BEGIN_MS + int(deadline) if deadline else 0
        item = Item(id, 0, at_ms, b"", deadline_ms, key, body, duplicate, after, ties=ties)
        self.apply(c.Submit((terms,), (item,)))

    def do_patch(self, id: str, *words: str) -> None:
        options = _options(words)
        at_ms = self._time(options.get("at"), options.get("in")) if {"at", "in"} & set(options) else None
        deadline = options.get("deadline")
        deadline_ms = None if deadline is None else (BEGIN_MS + int(deadline) if deadline != "none" else 0)
        priority = int(options["priority"]) if "priority" in options else None
        revision = int(options.get("revision", "0"))
        self.apply(c.Patch(id, revision, execute_at_ms=at_ms, deadline_ms=deadline_ms, priority=priority))

    def do_cancel(self, id: str, *words: str) -> None:
        self.apply(c.Cancel(id, tree=words == ("tree",)))

    def do_fire(self, id: str) -> None:
        self.apply(c.FireNow(id))

    def do_revive(self, id: str, *words: str) -> None:
        self.apply(c.Revive(id, 0, self._time(None, _options(words).get("in", "0"))))

    # The world.

    def do_settle(self, place: str, word: str, *words: str) -> None:
        id, _, delivery = place.partition("#")
        intent = self.kernel.state.store.get(id)
        consumer = "" if intent is None else intent.consumer
        self.apply(c.Settle((Settlement(id, int(delivery), _outcome(word, words), consumer=consumer),)))

    def do_advance(self, ms: str) -> None:
        self.now_ms += int(ms)
        self.apply(c.Advance())

    def do_clock(self, ms: str) -> None:
        """The clock is set forward or back; nobody notices before the next record."""
        self.now_ms += int(ms)

    def do_leap(self, ms: str) -> None:
        """The clock is set, and the engine notices it."""
        self.now_ms += int(ms)
        self.apply(c.Leap(int(ms)))

    def do_stall(self, ms: str) -> None:
        """The engine stands still for a while, and notices it."""
        self.now_ms += int(ms)
        self.apply(c.Leap(0, int(ms)))

    def do_restart(self) -> None:
        """The engine is killed; another one starts from its checkpoint and begins a new epoch."""
        for job in self.store.checkpoint(self.kernel.checkpoint(0)):
            job()
        self.store = self.store.reopen()
        self.kernel = Kernel(self.store)
        checkpoint = self.store.load()
        assert checkpoint is not None
        self.kernel.thaw(checkpoint)
        self.apply(c.Start(self.kernel.state.epoch + 1))

    # Workers and operators.

    def do_demand(self, name: str, lane: str, credits: str) -> None:
        self.apply(c.Demand(name, lane, int(credits)))

    def do_claim(self, name: str, lane: str, credits: str) -> None:
        self.apply(c.Demand(name, lane, int(credits), False))

    def do_beat(self, name: str) -> None:
        self.apply(c.Beat(name))

    def do_leave(self, name: str) -> None:
        self.apply(c.Leave(name))

    def do_drain(self) -> None:
        self.apply(c.Drain())

    def do_pause(self, lane: str) -> None:
        self.apply(c.Pause(lane))

    def do_resume(self, lane: str) -> None:
        self.apply(c.Resume(lane))

    def do_resize(self, tier: str, permits: str) -> None:
        self.apply(c.Resize(Tier[tier], int(permits)))

    # Readers.

    def do_show(self, *ids: str) -> None:
        for id in ids:
            intent = self.store.get(id)
            assert intent is not None, f"there is no {id}"
            wake = f", wakes at {intent.wake_at_ms - BEGIN_MS}" if intent.wake_at_ms else ""
            state = f"attempt {intent.attempt}, delivery {intent.delivery}{wake}"
            self.lines.append(f"{id} {intent.status.name} ({state})")

    def do_why(self, id: str) -> None:
        intent = self.store.get(id)
        assert intent is not None, f"there is no {id}"
        why = query.why(self.kernel.state, intent, self.now_ms)
        self.lines.append(f"{why.code}: {_relative(why.sentence)}")

    def do_history(self, id: str) -> None:
        intent = self.store.get(id)
        assert intent is not None, f"there is no {id}"
        for entry in entries_of(intent):
            note = f": {_relative(entry.note)}" if entry.note else ""
            self.lines.append(f"{entry.at_ms - BEGIN_MS:>6} {entry.status.name}{note}")

    def _time(self, at: str | None, later: str | None) -> int:
        return BEGIN_MS + int(at) if at is not None else self.now_ms + int(later or 0)


def hash_of(text: str) -> int:
    """A fingerprint that is the same in every process."""
    return sum(text.encode())


def _relative(text: str) -> str:
    """Moments in a message, counted from the beginning of the story."""
    words = text.split(" ")
    return " ".join(str(int(w) - BEGIN_MS) if w.isdigit() and int(w) > BEGIN_MS // 2 else w for w in words)


def _options(words: tuple[str, ...]) -> dict[str, str]:
    return {name: value or "yes" for name, _, value in (word.partition("=") for word in words)}


def _target(options: dict[str, str]) -> Target:
    if "entity" in options:
        kind, _, id = options.pop("entity").partition("/")
        return Entity(kind, id, "message")
    if "stream" in options:
        return Stream(options.pop("stream"))
    if options.pop("callback", ""):
        return Callback("https://example.com/hook")
    return Bare() if options.pop("bare", "") else Task("work", options.pop("task", "mail"))


def _ties(options: dict[str, str]) -> Ties | None:
    """`unique=KEY:end`, `unique=KEY:time:5000` or `collapse=KEY:debounce`; `members=3`; `group=ID`."""
    said = options.pop("unique", None) or options.pop("collapse", None)
    group, members = options.pop("group", None), int(options.pop("members", "0"))
    if said is None:
        return Ties(group=group, members=members) if group or members else None
    key, until, *for_ms = said.split(":")
    return Ties(Claim(key, Until[until.upper()], int(for_ms[0]) if for_ms else 0))


def _terms(options: dict[str, str]) -> Terms:
    target = _target(options)
    redelivery = Redelivery(
        int(options.pop("attempts", "5")),
        Backoff[options.pop("backoff", "exponential").upper()],
        int(options.pop("delay", "1000")),
        int(options.pop("delay_max", "60000")),
        int(options.pop("multiplier", "200")),
        bool(options.pop("jitter", "")),
    )
    return Terms(
        target,
        lane_of(target),
        Tier[options.pop("tier", "STANDARD")],
        guarantee=Guarantee(bool(options.pop("once", ""))),
        on_interrupt=OnInterrupt[options.pop("interrupt", "retry").upper()],
        redelivery=redelivery,
        priority=int(options.pop("priority", "0")),
        lease_ms=int(options.pop("lease", "30000")),
        expired_action=ExpiredAction[options.pop("expired", "discard").upper()],
        after_on=AfterOn[options.pop("on", "success").upper()],
        fairness_key=options.pop("share", None),
        fairness_weight=int(options.pop("weight", "1")),
    )


def _outcome(word: str, words: tuple[str, ...]) -> Outcome:
    match word:
        case "done":
            return Done()
        case "failed":
            options = _options(words[1:])
            wait_ms = int(options.get("wait", "-1"))
            return Failed("http", words[0] if words else "500", 500, wait_ms)
        case "snoozed":
            return Snoozed(int(words[0]))
        case "rejected":
            return Rejected("refused", " ".join(words) or "it can never work")
        case "lost":
            return Lost("nobody knows")
    raise AssertionError(f"no outcome is called {word!r}")


def _answers(command: c.Command, answer: Answer) -> Iterator[str]:
    if isinstance(command, c.Settle) and isinstance(answer, list):
        for settlement, counted in zip(command.settlements, answer, strict=True):
            if not counted:
                yield f"stale {settlement.id}#{settlement.delivery}"
        return
    for reply in answer if isinstance(answer, list) else [answer]:
        if isinstance(reply, Refusal):
            yield f"refused {reply.reason.value}: {_relative(reply.message)}"
        elif isinstance(reply, Existing):
            yield f"existing {reply.intent.id}"
        else:
            assert reply is None or isinstance(reply, Intent)
