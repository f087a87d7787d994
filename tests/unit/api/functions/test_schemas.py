"""Schemas of workers: nothing is loaded for them, and what they cost is bounded."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from duetime.api.functions import schemas
from duetime.api.functions.registry import Announced, FunctionRegistry, checked
from duetime.api.functions.schemas import CompiledSchema, Unusable
from duetime.errors import InvalidField
from duetime.limits import SCHEMA_COST_MAX, SCHEMA_COST_TOLD_MAX, SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX
from duetime.protocol.terms import Task

NODE: dict[str, Any] = {
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Node"}]},
            },
            "required": ["name"],
        }
    },
    "$ref": "#/$defs/Node",
}


def rule(schema: object) -> CompiledSchema:
    found = schemas.rule(json.dumps(schema))
    assert found is not None
    return found


def wrong(rule: CompiledSchema, value: object) -> object:
    return rule.wrong(json.dumps(value).encode(), value)


def doubling(levels: int) -> dict[str, Any]:
    """Each level refers to the one below twice: small, and twice the work with every level."""
    levels_by_name: dict[str, Any] = {"l0": {"type": "string"}}
    for level in range(1, levels):
        levels_by_name[f"l{level}"] = {"anyOf": [{"$ref": f"#/$defs/l{level - 1}"}] * 2}
    return {"$defs": levels_by_name, "$ref": f"#/$defs/l{levels - 1}"}


def nested(word: str, levels: int) -> Any:
    return {"type": "string"} if not levels else {word: [nested(word, levels - 1), {"type": "null"}]}


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as found:
        found.setblocking(False)
        yield found


FOREIGN = [
    lambda url: {"$ref": url},
    lambda url: {"properties": {"x": {"items": {"anyOf": [{"$ref": url}]}}}},
    lambda url: {"$defs": {"unused": {"$ref": url}}},
    lambda url: {"$id": url},
    lambda url: {"$schema": url},
    lambda url: {"allOf": [{"$dynamicRef": url}]},
    lambda url: {"not": {"$id": url, "$ref": "#/$defs/x"}, "$defs": {"x": {}}},
]


@pytest.mark.parametrize("schema", FOREIGN)
def test_a_reference_to_another_document_is_refused_and_never_fetched(schema, listener):
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
    function = Announced("f", "default", None, "()", json.dumps(schema(url)))
    with pytest.raises(InvalidField, match="schema"):
        checked([function])
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize("form", ["file://{}", "{}", "other.json", "#anchor", ""])
def test_a_file_is_never_read(form, tmp_path):
    path = tmp_path / "schema.json"
    path.write_text('{"type": "string"}')
    with pytest.raises(InvalidField, match="not in the schema itself"):
        rule({"$ref": form.format(path)})


def test_data_that_looks_like_a_reference_is_data():
    url = "http://127.0.0.1:1/"
    for schema in (
        {"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}},
        {"const": {"$ref": url}}, {"enum": [{"$id": url}]}, {"default": {"$ref": url}},
        {"x-own": {"$ref": url}},
    ):  # fmt: skip
        rule(schema)


def test_the_validator_itself_would_load_nothing():
    with pytest.raises(ValueError, match="not loaded"):
        schemas.load_nothing(Path("/etc/passwd").as_uri())


@pytest.mark.parametrize("word", ["anyOf", "allOf", "oneOf"])
def test_thirty_levels_are_fast(word):
    found = rule(nested(word, 30))
    value = [["x"] * 100]
    assert found.cost(json.dumps(value).encode(), value) < SCHEMA_COST_MAX
    wrong(found, value)


def test_a_schema_that_doubles_with_every_level_is_not_used():
    rule(doubling(8))
    with pytest.raises(Unusable, match=f"{SCHEMA_NODES_MAX} are allowed"):
        rule(doubling(30))


def test_a_function_with_such_a_schema_is_not_checked():
    book = FunctionRegistry()
    book.join("w", checked([Announced("f", "default", None, "()", json.dumps(doubling(30)))]))
    book.check(Task("f"), b"[[1]]")


def test_a_schema_that_is_nested_too_deep_is_not_used():
    for schema in (nested("anyOf", SCHEMA_DEPTH_MAX + 1), {"const": _lists(SCHEMA_DEPTH_MAX + 2)}):
        with pytest.raises(Unusable, match="nested deeper"):
            rule(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}]},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"},
    ],
)
def test_references_that_lead_nowhere_are_not_used(schema):
    with pytest.raises(Unusable, match="lead nowhere"):
        rule(schema)


@pytest.mark.parametrize("place", ["#/$defs/none", "#/type/x", "#/items/7", "#/items/x"])
def test_a_reference_to_nothing_is_not_used(place):
    with pytest.raises(Unusable, match="not there"):
        rule({"type": "object", "items": [{}], "additionalProperties": {"$ref": place}})


def test_a_list_that_refers_to_itself_is_checked_however_long_it_is():
    found = rule(NODE)
    chain: Any = {"name": "last", "next": None}
    for _ in range(200):
        chain = {"name": "x", "next": chain}
    assert wrong(found, chain) is None
    chain["next"]["next"]["name"] = 7
    assert wrong(found, chain) is not None


def test_a_branching_recursive_schema_is_checked_only_for_shallow_values():
    branch = {"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x", "y"]}
    found = rule({"anyOf": [branch, branch, {"type": "integer"}]})
    shallow, deep = {"x": "no"}, _nested("no", 30)
    assert wrong(found, shallow) is not None
    assert found.cost(b"", deep) > SCHEMA_COST_MAX and wrong(found, deep) is None


def test_loops_inside_of_loops_count():
    inner = {"type": "object", "properties": {"i": {"$ref": "#/$defs/inner"}}}
    outer = {"properties": {"o": {"$ref": "#/$defs/outer"}, "i": {"$ref": "#/$defs/inner"}}}
    found = rule({"$defs": {"inner": inner, "outer": outer}, "$ref": "#/$defs/outer"})
    flat, deep = found.cost(b"[]", {}), found.cost(b"[]", _nested({}, 10))
    assert deep > flat


def test_a_large_payload_is_refused_without_the_place():
    """To tell what is wrong took 13 s for 5,000 values with 100 alternatives each."""
    found = rule({"type": "array", "items": {"enum": list(range(50))}})
    many = [-1] * 2_000
    assert found.cost(json.dumps(many).encode(), many) > SCHEMA_COST_TOLD_MAX
    assert wrong(found, many) == "it does not match the function's schema"
    assert getattr(wrong(found, [1, -1]), "instance_path") == [1]  # noqa: B009 - of an object of either kind
    book = FunctionRegistry()
    text = json.dumps({"type": "array", "items": {"enum": list(range(50))}})
    book.join("w", checked([Announced("f", "default", None, "()", text)]))
    with pytest.raises(InvalidField, match="does not match"):
        book.check(Task("f"), json.dumps(many).encode())


def test_a_check_that_could_block_the_loop_is_skipped():
    found = rule({"type": "array", "items": {"enum": list(range(4_000))}})
    assert wrong(found, [-1] * 10) is not None
    assert wrong(found, [-1] * 10_000) is None


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "(a|aa)+$"])
def test_patterns_are_matched_in_linear_time(pattern):
    found = rule({"type": "string", "pattern": pattern})
    assert wrong(found, "a" * 10_000 + "!") is not None
    assert wrong(rule({"patternProperties": {pattern: False}}), {"a" * 1_000: 1}) is not None


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(a{1,100}){1,100}{1,100}"])
def test_patterns_that_cannot_be_are_not_used(pattern):
    (function,) = checked([Announced("f", "default", None, "()", json.dumps({"pattern": pattern}))])
    assert function.rule is None


def test_equal_schemas_share_one_rule():
    assert rule(NODE) is rule(NODE)
    assert schemas.rule("") is None


def _lists(levels: int) -> Any:
    return 1 if not levels else [_lists(levels - 1)]


def _nested(value: Any, levels: int) -> Any:
    return value if not levels else {"x": _nested(value, levels - 1)}
