"""The schema of a function never refuses what the function would take."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator

from duetime.client.app.payload import Signature, encode
from duetime.client.execution.functions import Functions
from duetime.client.execution.run_policy import RunPolicy
from duetime.client.execution.schemas import listed, schema_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


@dataclass
class Line:
    name: str
    count: int = 1
    at: dt.datetime | None = None


class Order(msgspec.Struct, tag="order"):
    lines: list[Line]
    colour: Colour


class Note(msgspec.Struct, tag="note"):
    text: str


class Point(NamedTuple):
    x: int
    y: float


class Row(TypedDict, total=False):
    id: int
    name: str


class Model(pydantic.BaseModel):
    a: int


class Strange:
    """Nothing that JSON knows."""


whole = st.integers(-(2**70), 2**70)
numbers = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8"), max_size=10)
moments = st.datetimes(timezones=st.just(dt.UTC))
lines = st.builds(Line, texts, st.integers(-(2**60), 2**60), st.none() | moments)
orders = st.builds(Order, st.lists(lines, max_size=2), st.sampled_from(Colour))

TYPES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, whole | st.booleans()),
    (float, numbers | whole | st.booleans()),
    (str, texts),
    (bool, st.booleans()),
    (list, st.lists(whole) | st.tuples(whole) | st.frozensets(whole)),
    (dict, st.dictionaries(texts, whole, max_size=2)),
    (Any, whole | texts | st.none() | lines),
    (object, whole | texts),
    (bytes, st.binary(max_size=8)),
    (int | None, st.none() | st.integers(-(2**60), 2**60)),
    (Optional[str], st.none() | texts),  # noqa: UP045
    (int | str, st.integers(-(2**60), 2**60) | texts),
    (dt.datetime, moments),
    (dt.date, st.dates()),
    (dt.time, st.times()),
    (dt.timedelta, st.timedeltas(dt.timedelta(0), dt.timedelta(days=9))),
    (uuid.UUID, st.uuids()),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (Colour, st.sampled_from(Colour)),
    (Size, st.sampled_from(Size)),
    (Literal["a", 1], st.sampled_from(["a", 1])),
    (list[int], st.lists(st.integers(-(2**60), 2**60), max_size=3)),
    (set[str], st.sets(texts, max_size=3)),
    (tuple[int, str], st.tuples(st.integers(-(2**60), 2**60), texts)),
    (tuple[int, ...], st.lists(st.integers(-(2**60), 2**60), max_size=3).map(tuple)),
    (dict[str, float], st.dictionaries(texts, numbers, max_size=2)),
    (dict[int, str], st.dictionaries(st.integers(-(2**60), 2**60), texts, max_size=2)),
    (Line, lines),
    (Order, orders),
    (Order | Note, orders | st.builds(Note, texts)),
    (Point, st.builds(Point, st.integers(-(2**60), 2**60), numbers)),
    (tuple[()], st.just(())),
    (Row, st.fixed_dictionaries({}, optional={"id": st.integers(0, 9), "name": texts})),
    (Model, st.builds(Model, a=st.integers(-(2**60), 2**60))),
    (list[Model], st.lists(st.builds(Model, a=st.integers(0, 9)), max_size=2)),
    (Annotated[str, msgspec.Meta(pattern="^[a-z]+$", min_length=1)], st.text("abc", min_size=1, max_size=5)),
    (Annotated[int, msgspec.Meta(ge=0, lt=10)], st.integers(0, 9)),
]


def function_of(annotations: list[Any], defaults: list[Any], kinds: str) -> Callable[..., Any]:
    """A function with these parameters: `p` by place, `k` by name only, `e` either way."""
    words, names = [], {"T": annotations, "D": defaults}
    for number, kind in enumerate(kinds):
        if kind == "k" and "k" not in kinds[:number]:
            words.append("*")
        default = "" if defaults[number] is ... else f" = D[{number}]"
        words.append(f"a{number}: T[{number}]{default}")
        if kind == "p" and "p" not in kinds[number + 1 :]:
            words.append("/")
    scope: dict[str, Any] = dict(names)
    exec(f"def f({', '.join(words)}): ...", scope)
    made: Callable[..., Any] = scope["f"]
    made.__annotations__ = {f"a{number}": kind for number, kind in enumerate(annotations)}
    return made


@st.composite
def calls(draw: Any) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
    """A function, and a call of it that its signature allows."""
    count = draw(st.integers(0, 4))
    chosen = [draw(st.sampled_from(TYPES)) for _ in range(count)]
    kinds = "".join(sorted((draw(st.sampled_from("pek")) for _ in range(count)), key="pek".index))
    first = draw(st.integers(0, count))
    defaults = [
        ...
        if number < first or (kind == "k" and draw(st.booleans()))
        else draw(st.none() | chosen[number][1])
        for number, kind in enumerate(kinds)
    ]
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for number, kind in enumerate(kinds):
        if defaults[number] is not ... and draw(st.booleans()):
            if kind in "pe" and number < kinds.count("p") + kinds.count("e"):
                # Who leaves one out by place gives those behind it by name, or not at all.
                kinds = kinds[: number + 1] + kinds[number + 1 :].replace("e", "n").replace("p", "-")
            continue
        if kind == "-":
            continue
        value = draw(chosen[number][1])
        if kind in "kn" or (kind == "e" and (kwargs or draw(st.booleans()))):
            kwargs[f"a{number}"] = value
        elif len(args) == number:
            args.append(value)
        else:
            kwargs[f"a{number}"] = value
    spelled = "".join("p" if k == "-" else "e" if k == "n" else k for k in kinds)
    return function_of([kind for kind, _ in chosen], defaults, spelled), args, kwargs


@given(calls())
def test_payloads_encoded_for_a_signature_pass_its_schema(call):
    function, args, kwargs = call
    signature = Signature(function, "f")
    try:
        signature.signature.bind(*args, **kwargs)
    except TypeError:
        return  # not a call that could be made
    payload = signature.encode(args, kwargs)
    validator = Draft202012Validator(schema_of(signature))
    document = msgspec.json.decode(payload) if payload else [[]]
    assert validator.is_valid(document), next(validator.iter_errors(document)).message


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=[str(kind) for kind, _ in TYPES])
def test_each_type_alone(kind, values):
    function = function_of([kind], [...], "e")
    signature = Signature(function, "f")
    validator = Draft202012Validator(schema_of(signature))

    @given(values)
    def passes(value):
        assert validator.is_valid(msgspec.json.decode(signature.encode((value,), {})))

    passes()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, "1"), (int, 1.5), (str, 1), (bool, 1), (list, {}), (dict, []), (float, "1"), (bytes, 1),
        (dt.datetime, 1), (Colour, "green"), (Line, {"count": 1}), (Line, {"name": 1}), (list[int], ["x"]),
        (Literal["a"], "b"), (tuple[int, str], [1]), (Order, {"type": "order"}), (int | None, "x"),
    ],
)  # fmt: skip
def test_wrong_payloads_do_not_pass_the_schema(kind, value):
    validator = Draft202012Validator(schema_of(Signature(function_of([kind], [...], "e"), "f")))
    assert not validator.is_valid([[value]])
    assert not validator.is_valid([[], {"a0": value}])


def test_types_without_a_json_schema_are_left_open():
    validator = Draft202012Validator(schema_of(Signature(function_of([Strange], [...], "e"), "f")))
    assert validator.is_valid([["anything"]])
    odd = Draft202012Validator(schema_of(Signature(function_of([int], [None], "e"), "f")))
    assert odd.is_valid([[None]]) and odd.is_valid([]) is False


def test_many_and_named_ones_may_be_taken():
    def f(a: int, *args: int, **kwargs: int) -> None: ...

    validator = Draft202012Validator(schema_of(Signature(f, "f")))
    assert validator.is_valid([[1, 2, 3], {"b": 4}])
    assert not validator.is_valid([[], {"b": 4}])


def test_a_function_that_cannot_be_looked_at_is_listed_without_a_schema():
    functions = Functions()

    class Wide(msgspec.Struct):
        text: Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["x" * 40_000]})]

    def f(a: Wide) -> None: ...

    f.__annotations__ = {"a": Wide}

    class Bounds:
        result_bytes_max, threads, processes = 1, 1, 1
        tasks_per_child_max = memory_per_child_bytes_max = 0

    functions.bounds = Bounds()
    functions.add("f", "q", f, Signature(f, "f"), RunPolicy(), False)
    (found,) = listed(functions, ["q"], [])
    assert (found.name, found.queue, found.schema) == ("f", "q", b"")
    assert listed(functions, ["other"], []) == []


def test_encode_is_what_travels():
    assert encode({"a": Model(a=1)}, "it") == b'{"a":{"a":1}}'
