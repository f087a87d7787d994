"""The law of groups is able to fail: with each of these bugs in the kernel, the simulator must find it.

The invariants would find most of them first, by counting; they look away here, so that the law is seen.
"""

from __future__ import annotations

import re

import pytest

from duetime.kernel import dependents, groups, invariants, lifecycle
from duetime.kernel.commands import cancel
from duetime.protocol.intent import EXPIRED
from duetime.protocol.terms import AfterOn
from tests.sim.test_checkers_can_fail import first_violation


@pytest.fixture
def not_counted(monkeypatch):
    monkeypatch.setattr(invariants, "_check_group", lambda state, callback, rare: None)


def test_an_expired_member_does_not_count(monkeypatch, not_counted):
    real = groups.callback_of

    def callback_of(state, member):
        return None if member.status is EXPIRED else real(state, member)

    monkeypatch.setattr(groups, "callback_of", callback_of)
    assert re.search("is stuck", first_violation(80))


def test_a_member_counts_twice(monkeypatch, not_counted):
    real = lifecycle.finish

    def finish(state, intent, status, error=None):
        real(state, intent, status, error)
        state.ended_parents += state.ended_parents[-1:]

    monkeypatch.setattr("duetime.kernel.commands.settle.finish", finish)
    assert re.search("goes on, and|goes on with|is stuck", first_violation(80))


def test_a_revived_member_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(groups, "rejoin", lambda state, member: None)
    assert "waits for" in first_violation(80)


def test_a_failed_member_is_taken_for_done(monkeypatch, not_counted):
    monkeypatch.setattr(
        dependents, "_parent_ended", lambda state, parent, child: dependents.go_on_if_free(state, child)
    )
    assert re.search("goes on, and|waits for .*, which is", first_violation())


def test_any_end_is_taken_for_a_failure(monkeypatch):
    class Other:
        SUCCESS, END, FAILURE = AfterOn.END, None, AfterOn.FAILURE

    monkeypatch.setattr(dependents, "AfterOn", Other)
    assert "nothing it waits for did" in first_violation()


def test_a_tree_is_cancelled_without_its_members(monkeypatch):
    monkeypatch.setattr(groups, "members_of", lambda state, callback: [])
    monkeypatch.setattr(invariants, "_check_group", lambda state, callback, rare: None)
    assert "hang on" in first_violation(200)


def test_a_tree_is_cancelled_without_what_waits_for_it(monkeypatch):
    monkeypatch.setattr(cancel, "_dependents", lambda state, intent: [])
    assert "hang on" in first_violation(200)


def test_a_tree_is_cancelled_and_more(monkeypatch):
    real = cancel._tree

    def tree(state, root):
        member = groups.callback_of(state, root)
        return [*real(state, root), *([member] if member is not None else [])]

    monkeypatch.setattr(cancel, "_tree", tree)
    assert "was cancelled" in first_violation(200)
