"""The law of claims is able to fail: bugs are put into the kernel, and the simulator must find each."""

from __future__ import annotations

import re

from duetime.kernel import claims, lifecycle
from duetime.protocol.intent import CANCELED, DUE, FINAL, SCHEDULED
from tests.sim.test_checkers_can_fail import first_violation


def test_a_unique_key_has_two_holders(monkeypatch):
    monkeypatch.setattr(claims, "held", lambda state, item: None)
    assert re.search("both have|and '.*' have '|took it", first_violation())


def test_a_claim_for_a_time_ends_with_its_intent(monkeypatch):
    """The kernel's bug alone: the store, which replica and engine share, finds what it should."""
    real = claims._holder

    def holder(state, key):
        found = real(state, key)
        return None if found is None or found.status in FINAL else found

    monkeypatch.setattr(claims, "_holder", holder)
    assert re.search("and '.*' took it", first_violation())


def test_a_collapse_key_lets_two_wait(monkeypatch):
    monkeypatch.setattr(claims, "waiting", lambda state, item: None)
    assert re.search("both have|and '.*' have '", first_violation())


def test_a_throttled_one_takes_its_own_time(monkeypatch):
    monkeypatch.setattr(claims, "placed", lambda item, old: item)
    assert re.search("another time than it should", first_violation())


def test_the_older_one_stays_and_the_newer_one_ends(monkeypatch):
    def end(state, old, item):
        other = next(each for each in state.store.page(None, None, 1 << 62, 99) if each is not old)
        if other.status in (SCHEDULED, DUE):
            lifecycle.finish(state, other, CANCELED)

    monkeypatch.setattr(claims, "end", end)
    assert re.search("nobody took its place|both have|and '.*' have '", first_violation())


def test_a_revived_one_has_its_key_besides_another(monkeypatch):
    monkeypatch.setattr(claims, "retaken", lambda state, dead: None)
    assert re.search("both have|and '.*' have '|does not find", first_violation(150))
