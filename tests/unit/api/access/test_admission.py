"""Limits of connections: per listener, per address, what is said of them, and the files kept back."""

from __future__ import annotations

import logging
import resource

import pytest

from duetime.api.access.admission import Admission, make_room, troubles
from duetime.limits import CONNECTIONS_MAX, FILES_RESERVED, REFUSALS_LOGGED_MS, REFUSALS_SHOWN_MS


class Now:
    ns = 0

    def __call__(self) -> int:
        return self.ns

    def pass_ms(self, ms: int) -> None:
        self.ns += ms * 1_000_000


def test_a_listener_is_full_and_has_room_again():
    door = Admission("http", 2, per_address=2)
    tickets = [door.admit(address) for address in ("10.0.0.1", "10.0.0.2")]
    assert door.admit("10.0.0.3") is None
    assert troubles([door]) == {"http": "http refuses new connections: all 2 connections are in use"}
    assert tickets[0] is not None
    tickets[0].release()
    tickets[0].release()
    assert door.open == 1, "a ticket is given back once"
    assert door.admit("10.0.0.3") is not None


@pytest.mark.parametrize(
    ("first", "second", "one"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("a:path", "a:path", True),
    ],
)
def test_one_address_has_a_share(first, second, one):
    """Of IPv6, a whole /64 is one: that much everybody has."""
    door = Admission("http", 10, per_address=1)
    assert door.admit(first) is not None
    assert (door.admit(second) is None) == one
    assert "10.0.0" not in door.trouble(), "health is open to everybody, and names nobody"


def test_half_is_one_addresses_share():
    door = Admission("grpc", 10)
    assert [door.admit("10.0.0.1") is None for _ in range(6)] == [False] * 5 + [True]
    assert door.admit("10.0.0.2") is not None


def test_refusals_are_shown_for_a_while_and_logged_once_per_period(caplog):
    caplog.set_level(logging.WARNING, "duetime")
    now = Now()
    door = Admission("http", 1, now_ns=now)
    assert door.trouble() == ""
    kept = door.admit("10.0.0.1")
    for _ in range(1_000):
        assert door.admit("10.0.0.1") is None
        now.pass_ms(1)
    door.out_of_files()
    assert "no file descriptor" in door.trouble()
    assert len(caplog.records) == 1
    now.pass_ms(REFUSALS_SHOWN_MS + 1)
    assert door.trouble() == ""
    now.pass_ms(REFUSALS_LOGGED_MS)
    door.out_of_files()
    assert len(caplog.records) == 2
    assert kept is not None


@pytest.mark.parametrize(
    ("hard", "listeners", "most"),
    [
        (resource.RLIM_INFINITY, 2, CONNECTIONS_MAX),
        (1 << 20, 2, CONNECTIONS_MAX),
        (10_000, 1, 10_000 - FILES_RESERVED),
        (10_000, 2, (10_000 - FILES_RESERVED) // 2),
        (1_024, 2, 256),
        (64, 2, 16),
        (1, 2, 1),
    ],
)
def test_files_are_kept_back(monkeypatch, hard, listeners, most):
    asked = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: asked.append(limits))
    assert make_room(listeners) == most
    assert asked == ([] if hard == 1 else [(hard, hard)])


def test_a_limit_of_files_that_cannot_be_raised_holds(monkeypatch):
    def refuse(which: int, limits: tuple[int, int]) -> None:
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda which: (10_000, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert make_room() == 10_000 - FILES_RESERVED
