"""The bytes of commands: there and back, and never a guess."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.protocol import record as codec
from duetime.protocol.command import (
    Advance,
    Cancel,
    Command,
    Demand,
    Patch,
    Pause,
    Revive,
    Settle,
    Start,
    Submit,
)
from duetime.protocol.intent import Intent, Item
from duetime.protocol.outcome import Done, Failed, Lost, Rejected, Settlement, Snoozed
from duetime.protocol.terms import Bare, Callback, Entity, Redelivery, Stream, Task, Terms

names = st.text(max_size=20)
numbers = st.integers(0, 10**13)
tags = st.none() | st.dictionaries(names, names, max_size=3)
targets = st.one_of(
    st.builds(Task, names, names),
    st.builds(Entity, names, names, names),
    st.builds(Callback, names, headers=tags, body=st.none() | st.binary()),
    st.builds(Stream, names),
    st.builds(Bare),
)
terms = st.builds(Terms, targets, names, redelivery=st.builds(Redelivery, jitter=st.booleans()), tags=tags)
items = st.builds(
    Item,
    names,
    numbers,
    numbers,
    payload=st.binary(),
    key=st.none() | names,
    fingerprint=st.integers(0, 2**63 - 1),
    after=st.lists(names, max_size=3).map(tuple),
)
outcomes = st.one_of(
    st.builds(Done, st.none() | st.binary()),
    st.builds(Failed, names, names),
    st.builds(Snoozed, numbers),
    st.builds(Rejected, names, names),
    st.builds(Lost, names),
)
commands = st.one_of(
    st.builds(Submit, st.lists(terms, max_size=3).map(tuple), st.lists(items, max_size=3).map(tuple)),
    st.builds(Settle, st.lists(st.builds(Settlement, names, numbers, outcomes), max_size=3).map(tuple)),
    st.builds(Patch, names, tags=tags, payload=st.none() | st.binary()),
    st.builds(Revive, names, target=st.none() | targets),
    st.builds(Cancel, names, numbers),
    st.builds(Demand, names, names, numbers, st.booleans()),
    st.builds(Start, numbers),
    st.builds(Advance),
)


@given(st.lists(commands, max_size=5))
def test_a_written_record_is_read_back(batch):
    assert codec.decode(codec.encode(batch)) == tuple(batch)


@given(st.binary(max_size=200))
def test_garbage_is_unreadable_and_nothing_else(body):
    with contextlib.suppress(codec.Unreadable):
        codec.decode(body)


def test_text_that_is_not_utf8_is_unreadable():
    body = codec.encode([Pause("stream:jobs")])
    with pytest.raises(codec.Unreadable):
        codec.decode(body.replace(b"jobs", b"\xff\xff\xff\xff"))


@given(st.lists(commands, min_size=1, max_size=3), st.data())
def test_a_torn_body_is_unreadable(batch, data):
    body = codec.encode(batch)
    end = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(codec.Unreadable):
        codec.decode(body[:end])


def test_a_command_of_a_later_version_is_unreadable_and_not_skipped():
    with pytest.raises(codec.Unreadable, match="fly"):
        codec.decode(msgspec.msgpack.encode([["advance"], ["fly", 1]]))


def test_an_unknown_number_of_an_enum_is_unreadable():
    body = codec.encode([Submit((Terms(Bare(), "bare:"),), ())])
    raw = msgspec.msgpack.decode(body)
    raw[0][1][0][2] = 9  # no such tier
    with pytest.raises(codec.Unreadable):
        codec.decode(msgspec.msgpack.encode(raw))


def test_a_field_of_a_later_version_is_passed_over():
    """Fields are only appended, so an older reader sees what it knows."""
    assert codec.decode(msgspec.msgpack.encode([["cancel", "a", 0, None, False, None, "new"]])) == (
        Cancel("a"),
    )


def test_a_field_of_an_earlier_version_has_its_default():
    assert codec.decode(msgspec.msgpack.encode([["cancel", "a"]])) == (Cancel("a", 0),)


TAGS = [
    "start", "configure", "submit", "patch", "cancel", "fire", "revive", "settle", "advance", "demand",
    "beat", "leave", "pause", "resume", "resize",
]  # fmt: skip


def test_tags_are_those_of_the_first_release():
    known = [kind.__struct_config__.tag for kind in Command.__args__]
    assert known[: len(TAGS)] == TAGS, "a tag never changes; new ones are appended"


def test_the_fields_of_an_intent_keep_their_places():
    fields = Intent.__struct_fields__
    assert fields[:10] == (
        "seq", "id", "terms", "payload", "status", "execute_at_ms", "wake_at_ms", "created_at_ms",
        "updated_at_ms", "deadline_ms",
    )  # fmt: skip
