"""Names of connections: unique, and only for the bearer of the token they were given to."""

from __future__ import annotations

import pytest

from duetime.api.deliveries.consumers import new_name, own_names
from duetime.errors import InvalidField
from duetime.limits import EARLIER_NAMES_MAX


def test_two_connections_never_have_the_same_name():
    assert len({new_name("worker", "token") for _ in range(100)}) == 100


def test_a_name_belongs_to_the_token_it_was_given_to():
    mine, theirs, nobodys = (
        new_name("w", "mine"),
        new_name("w", "theirs"),
        new_name("w", ""),
    )
    given = [mine, theirs, nobodys, "", "~", "w"]
    assert own_names(given, "mine") == (mine,)
    assert own_names(given, "") == (nobodys,)


def test_a_client_cannot_take_the_name_of_another_consumer():
    mine = new_name("w", "mine")
    assert own_names([new_name(mine, "theirs")], "mine") == ()


def test_the_newest_of_too_many_names_count():
    given = [new_name("w", "") for _ in range(EARLIER_NAMES_MAX + 1)]
    assert own_names(given, "") == tuple(given[1:])


@pytest.mark.parametrize("name", ["", "x" * 101, "a\nb"])
def test_names_that_cannot_be_shown_are_refused(name):
    with pytest.raises(InvalidField):
        new_name(name, "")
