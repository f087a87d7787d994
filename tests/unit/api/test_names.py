"""Names of connections: unique, and only for the bearer of the token they were given to."""

from __future__ import annotations

import pytest

from duetime.api.grpc import consumer_names
from duetime.errors import InvalidField
from duetime.limits import EARLIER_NAMES_MAX


def test_two_connections_never_have_the_same_name():
    assert len({consumer_names.new("worker", "token") for _ in range(100)}) == 100


def test_a_name_belongs_to_the_token_it_was_given_to():
    mine, theirs, nobodys = (
        consumer_names.new("w", "mine"),
        consumer_names.new("w", "theirs"),
        consumer_names.new("w", ""),
    )
    given = [mine, theirs, nobodys, "", "~", "w"]
    assert consumer_names.own(given, "mine") == (mine,)
    assert consumer_names.own(given, "") == (nobodys,)


def test_a_client_cannot_take_the_name_of_another_consumer():
    mine = consumer_names.new("w", "mine")
    assert consumer_names.own([consumer_names.new(mine, "theirs")], "mine") == ()


def test_the_newest_of_too_many_names_count():
    given = [consumer_names.new("w", "") for _ in range(EARLIER_NAMES_MAX + 1)]
    assert consumer_names.own(given, "") == tuple(given[1:])


@pytest.mark.parametrize("name", ["", "x" * 101, "a\nb"])
def test_names_that_cannot_be_shown_are_refused(name):
    with pytest.raises(InvalidField):
        consumer_names.new(name, "")
