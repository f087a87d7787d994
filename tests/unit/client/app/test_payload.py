"""Arguments as JSON and back, by the function's own signature."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf, nan
from typing import Any

import pytest

from duetime.client.app.payload import Signature, decode, encode
from duetime.client.http.requests import body
from duetime.errors import InvalidField


def plain(a: int, b: str = "x") -> None: ...


def typed(when: datetime, *rest: int, scale: float = 1, **more: datetime) -> None: ...


def unresolvable(a: Nowhere) -> Elsewhere: ...  # type: ignore[name-defined]  # noqa: F821


NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (plain, (1,), {}),
        (plain, (1, "y"), {}),
        (plain, (1,), {"b": "y"}),
        (plain, (), {"a": 1}),
        (typed, (NOON, 1, 2), {"scale": 2.5}),
        (typed, (NOON,), {}),
        (lambda: None, (), {}),
    ],
)
def test_decoded_arguments_equal_the_encoded_ones(function, args, kwargs):
    signature = Signature(function, "f")
    assert signature.decode(signature.encode(args, kwargs)) == (list(args), kwargs)


def test_no_arguments_are_no_bytes():
    assert Signature(lambda: None, "f").encode((), {}) == b""


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), ((1, "a", 2), {}), ((1,), {"c": 1}), ((1,), {"a": 1})]
)
def test_a_call_that_cannot_be_made_is_refused(args, kwargs):
    with pytest.raises(InvalidField, match=r"f\(a: .*\) -> .* cannot be called with these arguments"):
        Signature(plain, "f").encode(args, kwargs)


def many(
    a: int | None,
    b: list[int],
    c: dict[str, int],
    d: bytes,
    e: bool,
    f: Any,
    *g: int,
    h: str = None,  # type: ignore[assignment]  # noqa: RUF013
    **i: int,
) -> None: ...


GOOD = (1, [2], {"k": 3}, b"4", True, object)


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, "1"), (0, 1.5), (1, "ab"), (1, {}), (2, [1]), (2, None), (3, "text"), (4, 1), (4, "yes")],
)
def test_a_plain_argument_of_another_type_is_named(place, value):
    args = [*GOOD[:place], value, *GOOD[place + 1 :]]
    with pytest.raises(InvalidField, match=f"Argument '{'abcdef'[place]}' of f is of the type") as caught:
        Signature(many, "f").encode(args, {})
    assert caught.value.details["argument"] == "abcdef"[place]
    with pytest.raises(InvalidField, match="Argument 'a' of f is of the type str, not int"):
        Signature(plain, "f").encode((), {"a": "1"})


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, None), (0, True), (1, (1, 2)), (1, {1}), (3, bytearray(b"x")), (5, None), (5, "x")],
)
def test_arguments_that_may_be_right_are_not_refused(place, value):
    args = [*GOOD[:5], "f"]
    args[place] = value
    Signature(many, "f").encode(args, {"h": None, "other": "anything"})
    Signature(many, "f").encode([*args, "not looked at"], {"h": "text"})


def test_an_argument_that_cannot_be_encoded_is_named():
    with pytest.raises(InvalidField, match="Argument 1 of f cannot be stored: object"):
        Signature(plain, "f").encode((object(),), {})
    with pytest.raises(InvalidField, match="Argument 'b' of f"):
        Signature(plain, "f").encode((1,), {"b": object()})


def test_names_that_cannot_be_resolved_leave_the_arguments_as_they_are():
    signature = Signature(unresolvable, "f")
    assert signature.decode(b'[["x"]]') == (["x"], {}) and signature.returns is Any


def test_a_value_of_the_wrong_type_is_not_let_through():
    with pytest.raises(Exception, match="RFC3339"):
        Signature(typed, "f").decode(b'[["noon"]]')


def test_results():
    assert decode(encode(NOON, "it"), datetime) == NOON
    assert decode(encode({"a": 1}, "it")) == {"a": 1}
    with pytest.raises(InvalidField, match="it cannot be stored"):
        encode(object(), "it")


@pytest.mark.parametrize("wrong", [nan, inf, [nan], {"deep": [{"er": -inf}]}])
def test_values_without_a_json_form_are_refused_with_their_place(wrong):
    def function(a: Any, b: Any = None) -> None: ...

    signature = Signature(function, "f")
    with pytest.raises(InvalidField, match=r"Argument 1 of f contains a float that is NaN or infinite"):
        signature.encode((wrong,), {})
    with pytest.raises(InvalidField, match=r"Argument 'b' of f contains"):
        signature.encode((None,), {"b": wrong})
    with pytest.raises(InvalidField, match=r"The payload contains a float"):
        encode(wrong, "The payload")
    with pytest.raises(InvalidField, match=r"The request contains a float"):
        body({"payload": wrong})
    assert encode([None, "null", 1.5], "The payload") == b'[null,"null",1.5]'
