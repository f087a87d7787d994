"""What the shell orders after each batch: what may go now, and what waits for a sync."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.engine.shell.inbox import Inbox, PendingCommand
from duetime.engine.shell.pump import Pump
from duetime.engine.shell.shell import Acts, Shell
from duetime.errors import Damaged, Fatal, NoSpace, TooLarge
from duetime.kernel.kernel import Kernel
from duetime.log.frame import Frame
from duetime.log.log import Position
from duetime.log.memory import MemoryLog
from duetime.protocol.command import Cancel, Command, Configure, Pause, Settings, Submit
from duetime.protocol.effect import Abort, Deliver
from duetime.protocol.intent import DISPATCHING, Intent, Item
from duetime.protocol.outcome import Done, Settlement
from duetime.protocol.reply import Answer, Reason, Refusal
from duetime.protocol.terms import AckLevel, Guarantee
from duetime.store.memory import MemoryStore
from duetime.testing.sim.engine_run import run_now
from tests.unit.kernel.bench import T0, terms

ASYNC, DEFERRED, DURABLE = AckLevel.ASYNC, AckLevel.BATCH_DEFERRED, AckLevel.DURABLE
PUSHED = Settings(pushed=("task",))


class FixedClock:
    """Says what the test says."""

    def __init__(self) -> None:
        self.ms = T0

    def now_ms(self) -> int:
        return self.ms

    def steady_ms(self) -> int:
        return self.ms - T0


class BrokenLog(MemoryLog):
    """A log that raises what the test wants, at the next append."""

    def __init__(self) -> None:
        super().__init__()
        self.error: Exception | None = None

    async def append(self, at: Position, frame: Frame) -> Position:
        error, self.error = self.error, None
        if error is not None:
            raise error
        return await super().append(at, frame)


class Driver:
    """A shell, its parts, and the callers' answers by name."""

    def __init__(self) -> None:
        self.log, self.clock, self.inbox = BrokenLog(), FixedClock(), Inbox(lambda: None)
        kernel = Kernel(MemoryStore())
        self.pump = Pump(self.log, kernel, self.clock, 0, lambda: 1)
        self.shell = Shell(self.pump, self.inbox, self.clock)
        self.first = run_now(self.shell.begin([Configure(PUSHED)]))
        self.shell.synced(self.pump.position)

    def ask(self, command: Command, ack: AckLevel = ASYNC) -> PendingCommand:
        request = PendingCommand(command, ack, _nobody)
        self.inbox.put(request)
        return request

    def submit(self, id: str, ack: AckLevel = ASYNC, *, delay: int = 0, **more: Any) -> PendingCommand:
        made = terms(ack=ack, **more)
        return self.ask(Submit((made,), (Item(id, 0, self.clock.ms + delay),)), ack)

    def step(self) -> Acts:
        return run_now(self.shell.step())


def _nobody(answer: Answer | Exception) -> None: ...


def asked(acts: Acts) -> list[PendingCommand]:
    return [request for request, _ in acts.replies if isinstance(request, PendingCommand)]


def started(acts: Acts) -> list[str]:
    return [effect.id for effect in acts.effects if type(effect) is Deliver]


@pytest.fixture
def driver() -> Driver:
    return Driver()


def test_the_first_frame_begins_an_epoch_and_is_synced_at_once(driver):
    assert driver.pump.kernel.state.epoch == 1
    assert driver.pump.kernel.state.settings == PUSHED
    assert (driver.first.sync, driver.first.position) == (DURABLE, driver.pump.position)


def test_an_empty_inbox_means_that_nothing_is_to_be_done(driver):
    before = driver.pump.position
    assert driver.step() == Acts()
    assert driver.pump.position == before


@pytest.mark.parametrize("ack", [ASYNC, DEFERRED])
def test_effects_that_need_no_sync_start_at_once(driver, ack):
    request = driver.submit("a", ack)
    acts = driver.step()
    assert started(acts) == ["a"]
    assert asked(acts) == [request]
    assert acts.sync is ack
    assert acts.position == driver.pump.position
    assert [change.id for change in acts.changes] == ["a", "a", "a"]
    assert not driver.shell.waits()


def test_a_durable_answer_and_its_delivery_wait_for_the_sync(driver):
    request = driver.submit("a", DURABLE)
    acts = driver.step()
    assert (acts.effects, acts.replies, acts.sync) == ([], [], DURABLE)
    assert [change.id for change in acts.changes] == ["a", "a", "a"], "observers see what the log has"
    assert driver.shell.waits()
    assert driver.shell.synced(acts.position - 1) == Acts()
    released = driver.shell.synced(acts.position)
    assert started(released) == ["a"]
    assert asked(released) == [request]
    assert not driver.shell.waits()


def test_an_at_most_once_delivery_waits_for_durability_at_every_ack_level(driver):
    request = driver.submit("a", guarantee=Guarantee.AT_MOST_ONCE)
    acts = driver.step()
    assert (started(acts), asked(acts), acts.sync) == ([], [request], DURABLE)
    assert started(driver.shell.synced(acts.position)) == ["a"]


def test_a_delivery_that_is_cancelled_while_it_waits_is_dropped(driver):
    driver.submit("a", DURABLE)
    driver.submit("b", DURABLE)
    driver.step()
    driver.ask(Cancel("a"))
    acts = driver.step()
    assert [(type(effect), effect.id) for effect in acts.effects] == [(Abort, "a")]
    assert started(driver.shell.synced(acts.position)) == ["b"]


def test_a_waiting_delivery_of_a_removed_intent_is_dropped(driver, monkeypatch):
    driver.submit("a", DURABLE)
    position = driver.step().position
    monkeypatch.setattr(driver.pump.kernel.state.store, "get", lambda id: None)
    assert started(driver.shell.synced(position)) == []


def test_one_sync_releases_every_batch_before_it_in_order(driver):
    first = driver.submit("a", DURABLE)
    driver.step()
    second = driver.submit("b", DURABLE)
    position = driver.step().position
    third = driver.submit("c", DURABLE)
    driver.step()
    released = driver.shell.synced(position)
    assert (started(released), asked(released)) == (["a", "b"], [first, second])
    assert driver.shell.waits()
    assert asked(driver.shell.synced(driver.pump.position)) == [third]


def test_each_of_a_batch_waits_for_what_it_asked_for(driver):
    durable, soon = driver.submit("a", DURABLE), driver.submit("b", ASYNC)
    acts = driver.step()
    assert (started(acts), asked(acts)) == (["b"], [soon])
    assert asked(driver.shell.synced(acts.position)) == [durable]


def test_the_passing_of_time_is_written_when_nothing_else_is(driver):
    driver.submit("a", delay=100)
    driver.step()
    driver.clock.ms += 200
    driver.inbox.time()
    assert started(driver.step()) == ["a"]
    driver.inbox.time()
    driver.ask(Pause("task:default"))
    acts = driver.step()
    assert acts.turn is not None
    assert acts.turn.batch.commands == [Pause("task:default")], "every record lets time pass"


def test_a_known_answer_needs_no_record(driver):
    driver.submit("a", delay=60_000)
    driver.step()
    before = driver.pump.position
    again = driver.submit("a", delay=60_000)
    driver.inbox.time()
    acts = driver.step()
    assert asked(acts) == [again]
    (_, answer) = acts.known[0]
    assert isinstance(answer, list) and isinstance(answer[0], Refusal)
    assert answer[0].reason is Reason.ID_EXISTS
    assert acts.turn is not None and acts.turn.answers == [None], "time passes all the same"
    assert driver.pump.position > before
    driver.submit("a", delay=60_000)
    assert driver.step().turn is None


def test_a_durable_answer_without_a_record_waits_for_what_it_rests_on(driver):
    driver.submit("a", DURABLE, delay=60_000)
    position = driver.step().position
    again, new = driver.submit("a", DURABLE, delay=60_000), driver.submit("b", delay=60_000)
    acts = driver.step()
    assert (asked(acts), acts.sync) == ([new], DURABLE)
    released = driver.shell.synced(position)
    assert asked(released)[1:] == [again]
    assert not driver.shell.waits(), "the record that came with it is not waited for"


def test_without_room_callers_are_refused_and_outcomes_are_kept(driver):
    driver.submit("a")
    driver.step()
    outcome = Settlement("a", 1, Done())
    driver.inbox.settle([outcome])
    request = driver.submit("b")
    driver.log.error = NoSpace("full")
    acts = driver.step()
    assert (acts.full, acts.failure, acts.turn, acts.sync) == (True, None, None, None)
    assert [(asked, type(error)) for asked, error in acts.replies] == [(request, NoSpace)]
    acts = driver.step()
    assert acts.turn is not None and acts.turn.answers == [[True]]
    assert driver.pump.kernel.state.store.get("b") is None


def test_a_command_too_large_to_write_is_refused_and_the_rest_is_taken_again(driver, monkeypatch):
    monkeypatch.setattr("duetime.engine.shell.inbox.FRAME_BYTES_MAX", 4_000)
    monkeypatch.setattr("duetime.engine.shell.pump.FRAME_BYTES_MAX", 3_000)
    large = driver.ask(Submit((terms(),), (Item("a", 0, T0, b"x" * 5_000),)))
    small = driver.submit("b")
    acts = driver.step()
    assert [(asked, type(error)) for asked, error in acts.replies] == [(large, TooLarge)]
    assert asked(driver.step()) == [small]


def test_any_other_error_stops_the_engine_and_every_caller_gets_it(driver):
    waiting = driver.submit("a", DURABLE)
    driver.step()
    request = driver.submit("b")
    driver.log.error = Damaged("a segment")
    acts = driver.step()
    assert isinstance(acts.failure, Damaged)
    assert acts.replies == [(request, acts.failure)]
    left = driver.submit("c")
    error = Fatal("It stopped.")
    assert driver.shell.abandon(error).replies == [(left, error), (waiting, error)]
    assert not driver.shell.waits() and not len(driver.inbox)


def test_a_store_that_cannot_be_read_stops_the_engine(driver, monkeypatch):
    def broken(*_: object) -> Intent:
        raise Damaged("a row")

    request = driver.submit("a")
    monkeypatch.setattr(driver.pump.kernel.state.store, "get", broken)
    acts = driver.step()
    assert isinstance(acts.failure, Damaged)
    assert acts.replies == [(request, acts.failure)]


def test_the_kernel_reports_changes_only_to_observers(driver):
    driver.pump.watched = lambda: False
    driver.submit("a")
    acts = driver.step()
    assert started(acts) == ["a"]
    assert acts.changes == []
    intent = driver.pump.kernel.state.store.get("a")
    assert intent is not None and intent.status is DISPATCHING
