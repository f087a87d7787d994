"""What is known before it is written: the kernel's own answer, and asking changes nothing."""

from __future__ import annotations

import msgspec
import pytest

from duetime.kernel import known_answers
from duetime.limits import DAY_MS
from duetime.protocol.command import (
    Cancel,
    Command,
    DropSchedule,
    FireNow,
    Patch,
    Pause,
    PauseSchedule,
    PutSchedule,
    ResumeSchedule,
    Revive,
    Submit,
    Tick,
    Trigger,
)
from duetime.protocol.intent import Item, Ties
from duetime.protocol.reply import Existing, Refusal
from duetime.protocol.schedule import Schedule
from duetime.protocol.terms import Claim, OnDuplicate, Until
from tests.unit.kernel.bench import T0, Bench, terms

EVERY = Schedule("s", every_ms=1_000, terms=terms())


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.submit("live", delay=60_000, key="live", fingerprint=7)
    bench.submit("named", delay=60_000, request="r1", fingerprint=7)
    bench.submit("done", key="done", fingerprint=7)
    bench.demand("w", "task:default")
    bench.done("done")
    bench.do(PutSchedule(EVERY, T0 + 1_000))
    bench.do(Trigger("s", "once"))
    bench.do(PutSchedule(Schedule("p", every_ms=1_000, terms=terms()), T0 + 1_000))
    bench.do(PauseSchedule("p"))
    return bench


def new(id: str, **more: object) -> Submit:
    return Submit((terms(),), (Item(id, 0, T0 + 60_000, fingerprint=7, **more),))  # type: ignore[arg-type]


KNOWN: dict[str, Command] = {
    "live twin": new("x", key="live", fresh=True),
    "live twin, rejected": new("x", key="live", fresh=True, on_duplicate=OnDuplicate.REJECT),
    "finished twin": new("x", key="done", fresh=True),
    "finished twin, returned": new("x", key="done", fresh=True, on_duplicate=OnDuplicate.RETURN),
    "another body": Submit((terms(),), (Item("x", 0, T0 + 60_000, key="live", fingerprint=8),)),
    "the id is taken": new("live"),
    "the request was done": new("named", request="r1"),
    "in the past": Submit((terms(),), (Item("x", 0, T0 - DAY_MS),)),
    "two": Submit((terms(),), (Item("live", 0, T0 + 60_000), Item("named", 0, T0 + 60_000))),
    "schedule as it is": PutSchedule(EVERY, T0 + 9_000),
    "schedule of another revision": PutSchedule(EVERY, T0 + 9_000, 77),
    "no schedule to drop": DropSchedule("none"),
    "no schedule to trigger": Trigger("none"),
    "drop of another revision": DropSchedule("s", 77),
    "paused": PauseSchedule("p"),
    "not paused": ResumeSchedule("s", T0 + 9_000),
    "triggered": Trigger("s", "once"),
    "no intent": Cancel("none"),
    "another revision": Patch("live", revision=77, priority=1),
    "ended": Cancel("done"),
    "nothing to fire": FireNow("none"),
    "nothing to revive": Revive("none"),
}

UNKNOWN: dict[str, Command] = {
    "plain": new("x", fresh=True),
    "new key": new("x", key="new", fresh=True),
    "new id": new("x"),
    "new request": new("x", request="r2"),
    "one of two": Submit((terms(),), (Item("live", 0, T0 + 60_000), Item("x", 0, T0 + 60_000))),
    "a claim": new("x", ties=Ties(claim=Claim("c", Until.END))),
    "a new schedule": PutSchedule(Schedule("t", every_ms=1_000, terms=terms()), T0 + 1_000),
    "another rule": PutSchedule(Schedule("s", every_ms=2_000, terms=terms()), T0 + 1_000),
    "drop": DropSchedule("s"),
    "pause": PauseSchedule("s"),
    "resume": ResumeSchedule("p", T0 + 9_000),
    "trigger": Trigger("s"),
    "trigger by name": Trigger("s", "twice"),
    "tick": Tick("s", 1, T0 + 1_000, (T0 + 1_000,), 0, T0 + 2_000),
    "cancel": Cancel("live"),
    "cancel what hangs on it": Cancel("done", tree=True),
    "fire": FireNow("live"),
    "pause of a lane": Pause("task:default"),
}


def shown(answer: object) -> object:
    if isinstance(answer, list):
        return [shown(each) for each in answer]
    return ("existing", answer.intent.id) if isinstance(answer, Existing) else answer


def state_of(bench: Bench) -> bytes:
    return msgspec.msgpack.encode(bench.kernel.checkpoint(0))


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_answer_equals_the_answer_of_the_kernel(bench: Bench, name: str) -> None:
    before = state_of(bench)
    known = known_answers.answer(bench.state, KNOWN[name], T0)
    assert known is not None and state_of(bench) == before
    assert shown(known) == shown(bench.do(KNOWN[name]).answer)


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_command_that_may_change_something_has_no_known_answer(bench: Bench, name: str) -> None:
    before = state_of(bench)
    assert known_answers.answer(bench.state, UNKNOWN[name], T0) is None
    assert state_of(bench) == before


def test_a_key_past_its_window_is_not_known(bench: Bench) -> None:
    def again(now_ms: int) -> object:
        return known_answers.answer(bench.state, KNOWN["live twin"], now_ms)

    window_ms = bench.state.settings.key_window_ms
    assert again(T0 + window_ms - 1) is not None
    assert again(T0 + window_ms) is None
    (refusal,) = known_answers.answer(bench.state, KNOWN["finished twin"], T0) or ()  # type: ignore[misc]
    assert isinstance(refusal, Refusal)
