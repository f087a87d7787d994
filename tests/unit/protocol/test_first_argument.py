"""The payload of a function whose first argument comes from its dependencies."""

from __future__ import annotations

import pytest

from duetime.protocol.first_argument import prepended


@pytest.mark.parametrize(
    ("payload", "whole"),
    [
        (b"", b"[[7]]"),
        (b"[[]]", b"[[7]]"),
        (b"[[1,2]]", b"[[7,1,2]]"),
        (b'[[],{"a":1}]', b'[[7],{"a":1}]'),
        (b' [ [ 1 ] , {"a": 1} ]', b' [ [ 7,1 ] , {"a": 1} ]'),
        (b" [\n[ ]]", b" [\n[ 7]]"),
    ],
)
def test_the_value_is_put_in_front(payload, whole):
    assert prepended(payload, b"7") == whole


@pytest.mark.parametrize("payload", [b"1", b'{"a":1}', b"[1]", b'"[["', b"null"])
def test_a_payload_without_a_list_of_arguments_has_no_front(payload):
    assert prepended(payload, b"7") is None
