"""Each law is able to fail: bugs are put into the engine, and the simulator must find each of them.

A checker that never fires proves nothing. Every test names the bug, and says in which seeds it must show.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from duetime import limits
from duetime.engine.durability import recovery
from duetime.engine.shell import shell
from duetime.engine.shell.inbox import PendingCommand
from duetime.engine.shell.pump import Pump
from duetime.errors import InDoubt
from duetime.kernel import dependents, invariants, lifecycle, retry, transitions
from duetime.kernel.commands import advance, control, schedules, settle
from duetime.kernel.kernel import Kernel
from duetime.kernel.queues import dispatch, entity_types, fairness, lanes, parking
from duetime.kernel.queues.tiers import Tiers
from duetime.kernel.timers import Timers
from duetime.log.frame import frame_bytes
from duetime.log.memory import MemoryLog
from duetime.protocol.intent import DISPATCHING, Item
from duetime.protocol.record import Record
from duetime.protocol.reply import Refusal
from duetime.protocol.schedule import tick_id
from duetime.protocol.terms import AckLevel
from duetime.store.memory import MemoryStore
from duetime.testing.sim import engine_run
from duetime.testing.sim.simulator import Violation, run_seed

SEEDS_MAX = 150


def violations(seeds: int) -> Iterator[str]:
    """What these seeds find, each the first thing it finds."""
    for seed in range(1, seeds + 1):
        try:
            run_seed(seed)
        except Violation as violation:
            yield violation.reason


def first_violation(seeds: int = SEEDS_MAX) -> str:
    """What the first of these seeds says that breaks."""
    for reason in violations(seeds):
        return reason
    pytest.fail(f"{seeds} seeds did not find it")


def found_by(law: str, seeds: int = SEEDS_MAX) -> bool:
    """Whether this very law finds it. In other seeds something else may stumble over it first."""
    return any(re.search(law, reason) for reason in violations(seeds))


def test_without_a_bug_these_seeds_are_quiet():
    for seed in range(1, 6):
        run_seed(seed)


def test_no_fence_on_outcomes(monkeypatch):
    def apply(state, command):
        counted = []
        for settlement in command.settlements:
            intent = state.store.get(settlement.id)
            if intent is None or intent.status is not DISPATCHING:
                counted.append(False)
                continue
            settle.settle(state, intent, settlement.outcome, settlement.log)
            counted.append(True)
        return counted

    monkeypatch.setattr(settle, "apply", apply)
    assert "it is stale" in first_violation()


def test_anybody_settles_any_delivery(monkeypatch):
    apply = settle.apply

    def trusting(state, command):
        settlements = tuple(
            settlement
            if (intent := state.store.get(settlement.id)) is None
            else replace(settlement, consumer=intent.consumer)
            for settlement in command.settlements
        )
        return apply(state, replace(command, settlements=settlements))

    monkeypatch.setattr(settle, "apply", trusting)
    assert "it is stale" in first_violation()


def test_start_forgets_what_ran(monkeypatch):
    monkeypatch.setattr(control, "settle", lambda state, intent, outcome: None)
    assert found_by("nothing will ever happen to .*DISPATCHING")


def test_a_permit_is_not_given_back(monkeypatch):
    monkeypatch.setattr(Tiers, "give_back", lambda self, tier, permit: None)
    assert "permits used" in first_violation()


def test_a_lane_is_not_freed(monkeypatch):
    real = lifecycle.take_back

    def take_back(state, intent):
        real(state, intent)
        state.lanes[intent.terms.lane].running += intent.terms.serial

    monkeypatch.setattr(settle, "take_back", take_back)
    assert "run, 0 do" in first_violation()


def test_a_timer_fires_a_millisecond_early(monkeypatch):
    real = Timers.expire
    monkeypatch.setattr(Timers, "expire", lambda self, at_ms, most: real(self, at_ms + 1, most))
    assert re.search("before its time|before its wait|only at its deadline", first_violation())


def test_the_wall_clock_leaks_into_apply(monkeypatch):
    ticks = itertools.count(1_800_000_000_000)
    real = advance.apply

    def apply(state):
        state.at_ms = next(ticks)
        real(state)

    monkeypatch.setattr(advance, "apply", apply)
    assert re.search("the record's is|the latest stamp", first_violation(3))


def test_an_append_in_doubt_is_taken_for_done(monkeypatch):
    async def append(self, frame):
        try:
            return await self._log.append(self.position, frame)
        except InDoubt:
            return self.position + frame_bytes(frame)

    monkeypatch.setattr(Pump, "_append", append)
    assert re.search("one frame at the log's end|acknowledged", first_violation())


def test_an_append_in_doubt_is_taken_for_lost(monkeypatch):
    async def settle_doubt(self, frame):
        return None

    monkeypatch.setattr(Pump, "_settle_doubt", settle_doubt)
    # It is only slower then: the log itself is the fence, and a second try finds it moved.
    for seed in range(1, 11):
        run_seed(seed)


def test_a_retry_waits_ever_less(monkeypatch):
    monkeypatch.setattr(
        retry, "delay_ms", lambda policy, id, attempt: policy.initial_delay_ms // (attempt + 1)
    )
    assert "before its wait was over" in first_violation()


def test_a_retry_waits_too_long(monkeypatch):
    monkeypatch.setattr(retry, "delay_ms", lambda policy, id, attempt: policy.max_delay_ms * 2 + 5)
    assert "more than its policy allows" in first_violation()


def test_expected_durations_are_forgotten_in_the_order(monkeypatch):
    real = lanes.rank_of

    def rank_of(intent, serial):
        place = real(intent, serial)
        return place if serial else place - limits.EXPECTED_FACTOR * intent.expected_ms

    for user in (lanes, dispatch, parking, invariants):
        monkeypatch.setattr(user, "rank_of", rank_of)
    assert "was overtaken" in first_violation()


def test_a_serial_lane_forgets_its_order(monkeypatch):
    monkeypatch.setattr(lanes, "rank_of", lambda intent, serial: -intent.seq)
    assert re.search("went out before|overtaken|was there before|not in its lane", first_violation())


def test_a_serial_lane_lets_others_pass(monkeypatch):
    class Blind(lanes.Lane):
        @property
        def holder(self):
            return None

        @holder.setter
        def holder(self, intent):
            pass

    monkeypatch.setattr("duetime.kernel.state.Lane", Blind)
    assert re.search("was there before|holds it|does not know", first_violation())


def test_the_deadline_is_not_looked_at(monkeypatch):
    monkeypatch.setattr(lifecycle, "expired", lambda state, intent: False)
    assert "after its deadline" in first_violation()


def test_the_clock_set_back_is_not_noticed(monkeypatch):
    monkeypatch.setattr(lifecycle, "_early", lambda state, intent: False)
    assert re.search("before its|ms early", first_violation())


def test_an_intent_changes_without_the_store_knowing(monkeypatch):
    """The store is not told of some changes, so a checkpoint misses them."""
    monkeypatch.setattr(MemoryStore, "touch", lambda self, intent: setattr(intent, "cycle", self.cycle))
    assert "do not add up" in first_violation()


def test_attempts_are_not_counted(monkeypatch):
    real = settle._failed

    def failed(state, intent, outcome):
        intent.attempt = 1
        real(state, intent, outcome)

    monkeypatch.setattr(settle, "_failed", failed)
    assert found_by(r"attempt \d+ of \d+")


def test_an_interrupted_at_most_once_runs_again(monkeypatch):
    monkeypatch.setattr(settle, "_once", lambda intent: False)
    assert found_by("is at most once and went out again")


def test_a_delivery_that_was_handed_back_costs_an_attempt(monkeypatch):
    monkeypatch.setattr(settle, "_returned", settle._lost)
    assert re.search("given up|more than its policy|: attempt", first_violation())


def test_at_most_once_is_started_before_the_medium_has_it(monkeypatch):
    monkeypatch.setattr(shell, "_split", lambda turn: (turn.effects, []))
    assert "its record was not synced" in first_violation()


def test_durable_is_answered_before_the_medium_has_it(monkeypatch):
    def offer(self, sent):
        self.inbox.put(PendingCommand(sent.command, AckLevel.ASYNC, sent))

    monkeypatch.setattr(engine_run.EngineRun, "offer", offer)
    assert "answered DURABLE before it was synced" in first_violation()


def test_the_log_is_not_synced_before_a_checkpoint(monkeypatch):
    """After power loss the store is ahead of the log, and they do not fit."""
    real = engine_run.EngineRun.checkpoint_step

    def checkpoint_step(self):
        self._log_synced = True
        real(self)
        self._log_synced = True

    monkeypatch.setattr(engine_run.EngineRun, "checkpoint_step", checkpoint_step)
    assert re.search("belong together", first_violation())


def test_recovery_skips_the_last_frame(monkeypatch):
    real = recovery._replay
    real_recover = recovery.recover
    held: list[tuple[Any, ...]] = []

    def replay(*frame):
        for before in held:
            real(*before)
        held[:] = [frame]

    async def recover(log, store, progress=None):
        held.clear()
        return await real_recover(log, store, progress)

    monkeypatch.setattr(recovery, "_replay", replay)
    monkeypatch.setattr(engine_run, "recover", recover)
    assert re.search("do not add up", first_violation())


def test_a_key_makes_two(monkeypatch):
    monkeypatch.setattr(MemoryStore, "by_key", lambda self, key: None)
    assert re.search("the key", first_violation())


def test_dependents_are_not_released(monkeypatch):
    def release(state):
        state.ended_parents.clear()

    monkeypatch.setattr(dependents, "release", release)
    assert re.search("which is ACKED|blocked|which is|counts|did not end|ever happen", first_violation())


def test_a_final_intent_is_moved(monkeypatch):
    monkeypatch.setattr(transitions, "_ALLOWED", [255] * 8)
    monkeypatch.setattr("duetime.kernel.commands.cancel.FINAL", frozenset())
    assert re.search("final is final", first_violation())


def test_a_random_order_leaks_into_effects(monkeypatch):
    """As a set of strings would: within a process the replica, which came another way, sees it."""
    real = Kernel.apply
    flips = itertools.count()

    def apply(self, record: Record, **watched: bool):
        applied = real(self, record, **watched)
        if next(flips) % 7 == 0:
            applied.effects.reverse()
            applied.changes.reverse()
        return applied

    monkeypatch.setattr(Kernel, "apply", apply)
    assert found_by(r"(change|effect) \d+: .* by replay")


def test_a_second_writer_gets_through(monkeypatch):
    async def append(self, at, frame):
        self.storage.frames.append((self.storage.tail, frame))
        self.storage.tail += frame_bytes(frame)
        return self.storage.tail

    monkeypatch.setattr(MemoryLog, "append", append)
    assert re.search("two writers|one frame at the log's end|the log has no gaps", first_violation())


def test_a_resumed_lane_stays_shut(monkeypatch):
    monkeypatch.setattr(control, "resume", lambda state, command: None)
    assert re.search("did not end|will ever happen", first_violation())


def test_a_tick_is_lost(monkeypatch):
    apply = schedules._decide

    def decide(state, table, time_ms):
        return table if time_ms % 3_000 == 0 else apply(state, table, time_ms)

    monkeypatch.setattr(schedules, "_decide", decide)
    assert "is lost" in first_violation()


def test_an_earlier_tick_is_queued(monkeypatch):
    real = schedules._decide

    def decide(state, table, time_ms):
        decided = real(state, table, time_ms)
        if isinstance(decided, Refusal) or decided.queued_ms == table.queued_ms:
            return decided
        return replace(decided, queued_ms=time_ms - (table.schedule.every_ms or limits.MINUTE_MS))

    monkeypatch.setattr(schedules, "_decide", decide)
    assert found_by("@[0-9]+' is queued")


def test_an_earlier_tick_is_made_when_a_queued_one_was_waited_for(monkeypatch):
    def item(schedule, time_ms):
        return Item(tick_id(schedule.id, time_ms - schedule.every_ms), 0, time_ms, fresh=True, relative=True)

    real = schedules.release

    def release(state):
        with monkeypatch.context() as within:
            within.setattr(schedules, "tick_item", item)
            real(state)

    monkeypatch.setattr(schedules, "release", release)
    assert found_by("is no tick")


def test_a_tick_has_a_time_of_its_own(monkeypatch):
    monkeypatch.setattr(schedules, "spread_ms", lambda schedule, time_ms: -1)
    assert "after its tick" in first_violation()


def test_a_schedule_does_not_know_what_runs(monkeypatch):
    monkeypatch.setattr(schedules, "release", lambda state: state.timetables.over.clear())
    assert re.search("followed|is lost", first_violation())


def test_the_log_of_an_attempt_is_not_kept(monkeypatch):
    real = settle.settle

    def forgetful(state, intent, outcome, log=None):
        real(state, intent, outcome)

    monkeypatch.setattr(settle, "settle", forgetful)
    assert "its attempt logged" in first_violation()


def test_an_entity_is_not_offered_to_consumers_of_its_type(monkeypatch):
    real = entity_types.offer

    def offer(state, track):
        real(state, track)
        if track.lane.name.endswith("e1") and track.listed is not None:
            entity_types.withdraw(state, track)

    monkeypatch.setattr(entity_types, "offer", offer)
    assert "is not offered" in first_violation()


def test_a_start_costs_its_share_nothing(monkeypatch):
    real = fairness.KeyShares.start

    def start(self, intent):
        share = self.keys[intent.terms.fairness_key or ""]
        had = share.had
        real(self, intent)
        share.had = had

    monkeypatch.setattr(fairness.KeyShares, "start", start)
    assert "is one too many" in first_violation()


def test_a_restart_forgets_what_the_shares_have_had(monkeypatch):
    monkeypatch.setattr(fairness.KeyShares, "kept", lambda self: dict.fromkeys(self.keys, 0))
    assert "by replay" in first_violation()


def test_intents_without_a_key_always_go_first(monkeypatch):
    monkeypatch.setattr(fairness.KeyShares, "first", lambda self, keyed, plain: plain or keyed)
    assert "is one too many" in first_violation()
