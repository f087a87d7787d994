"""The law of handed results is able to fail: with each of these bugs, the simulator must find it."""

from __future__ import annotations

import re

from duetime.kernel import dependents, handover
from tests.sim.test_checkers_can_fail import first_violation, found_by


def test_a_step_gets_another_result(monkeypatch):
    monkeypatch.setattr(handover, "_result", lambda state, parent: b'"other"')
    assert re.search("got", first_violation(60))


def test_a_webhook_gets_its_parents_in_another_order(monkeypatch):
    real = handover._ids
    monkeypatch.setattr(handover, "_ids", lambda intent, rare: real(intent, rare)[::-1])
    assert found_by("got", 60)


def test_a_delay_is_not_kept(monkeypatch):
    monkeypatch.setattr(dependents, "max", lambda own_ms, later_ms: own_ms, raising=False)
    assert found_by("before its time", 60)


def test_a_branch_for_failures_runs_after_success(monkeypatch):
    def go_on(state, child, text):
        dependents._go_on(state, child, text)

    monkeypatch.setattr(dependents, "_cancel", go_on)
    assert found_by("none of .* has failed", 60)


def test_a_branch_for_failures_is_always_cancelled(monkeypatch):
    def cancel(state, parent, child):
        dependents._cancel(state, child, "")

    monkeypatch.setattr(dependents, "decide", cancel)
    assert found_by("was cancelled", 60)
