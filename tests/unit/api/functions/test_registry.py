"""The book of functions: who says what, and what is checked by it."""

from __future__ import annotations

import msgspec
import pytest

from duetime.api.functions.registry import Announced, FunctionRegistry, checked
from duetime.errors import InvalidField
from duetime.limits import FUNCTION_BYTES_MAX, FUNCTIONS_KEPT, FUNCTIONS_MAX
from duetime.protocol.terms import Entity, Stream, Task

NUMBER = '{"type":"array","prefixItems":[{"type":"array","prefixItems":[{"type":"integer"}]}]}'
TEXT = NUMBER.replace("integer", "string")


def function(schema: str = NUMBER, name: str = "f", entity: str | None = None) -> Announced:
    (made,) = checked([Announced(name, None if entity else "default", entity, "(a)", schema)])
    return made


def fits(book: FunctionRegistry, payload: bytes) -> bool:
    try:
        book.check(Task("f"), payload)
    except InvalidField:
        return False
    return True


def test_payloads_are_checked_only_where_all_workers_agree():
    book = FunctionRegistry()
    assert fits(book, b'[["x"]]'), "nobody has said anything"
    book.join("v", [function()])
    assert not fits(book, b'[["x"]]') and fits(book, b"[[1]]")
    book.join("w", [function(TEXT)])
    assert fits(book, b'[["x"]]') and fits(book, b"[[1]]")
    book.leave("v")
    assert fits(book, b'[["x"]]') and not fits(book, b"[[1]]")
    book.leave("w")
    assert not fits(book, b"[[1]]"), "who was last is remembered"
    book.join("v", [function()])
    assert fits(book, b"[[1]]") and not fits(book, b'[["x"]]')


def test_entity_messages_and_tasks_are_distinguished():
    book = FunctionRegistry()
    book.join("w", [function(name="add", entity="cart")])
    book.check(Task("add"), b'[["x"]]')
    book.check(Stream("add"), b'[["x"]]')
    with pytest.raises(InvalidField, match=r"does not fit cart\.add"):
        book.check(Entity("cart", "7", "add"), b'[["x"]]')


@pytest.mark.parametrize("schema", ["", "{", '{"type": 7}', '{"$ref": "#/nowhere"}'])
def test_a_schema_that_cannot_be_used_checks_nothing(schema):
    book = FunctionRegistry()
    book.join("w", [function(schema)])
    assert fits(book, b'[["x"]]')
    assert book.shown().functions[0].parameters is None


def test_numbers_too_large_for_the_validator_are_accepted():
    book = FunctionRegistry()
    book.join("w", [function()])
    assert fits(book, b"[[" + b"9" * 100 + b"]]")


def test_bounds():
    assert checked([function("x" * (FUNCTION_BYTES_MAX + 1))])[0].schema == ""
    with pytest.raises(InvalidField, match="at most"):
        checked(function() for _ in range(FUNCTIONS_MAX + 1))
    with pytest.raises(InvalidField, match="characters"):
        checked([function(name="")])


def test_the_registry_is_bounded_and_drops_functions_without_workers_first():
    book = FunctionRegistry()
    book.join("w", [function("", "stays")])
    book.join("v", [function("", f"f{number}") for number in range(FUNCTIONS_KEPT - 1)])
    book.leave("v")
    book.join("u", [function("", "new")])
    names = {each.name for each in book.shown().functions}
    assert len(names) == FUNCTIONS_KEPT and {"stays", "new"} <= names and "f0" not in names
    assert msgspec.json.encode(book.shown())


class TestUnknownMessages:
    """A message that no connected worker takes is refused where its type is known."""

    def refusal(self, book: FunctionRegistry, message: str, kind: str = "cart") -> InvalidField | None:
        try:
            book.check(Entity(kind, "7", message), b"")
        except InvalidField as error:
            return error
        return None

    def test_an_unknown_function_is_refused_with_the_known_names(self):
        book = FunctionRegistry()
        book.join("w", [function("", "add", "cart"), function("", "drop", "cart")], ["cart"])
        assert self.refusal(book, "add") is None
        error = self.refusal(book, "ad")
        assert error is not None and error.code == 42208
        assert "take no message 'ad'" in error.message and error.hint == "Its messages are: add, drop."
        assert self.refusal(book, "anything", "order") is None, "nobody speaks of this type"

    def test_a_message_that_any_worker_takes_is_accepted(self):
        book = FunctionRegistry()
        book.join("old", [function("", "add", "cart")], ["cart"])
        book.join("new", [function("", "add", "cart"), function("", "drop", "cart")], ["cart"])
        assert self.refusal(book, "drop") is None
        book.leave("new")
        assert self.refusal(book, "drop") is not None
        book.leave("old")
        assert self.refusal(book, "drop") is None, "who comes next may take it"

    def test_a_worker_that_lists_nothing_may_take_anything(self):
        book = FunctionRegistry()
        book.join("one", [function("", "add", "cart")], ["cart"])
        book.join("other", [], ["cart"])
        assert self.refusal(book, "drop") is None

    def test_a_long_list_is_cut(self):
        book = FunctionRegistry()
        book.join("w", [function("", f"m{number:02}", "cart") for number in range(25)], ["cart"])
        error = self.refusal(book, "x")
        assert error is not None and error.hint.endswith("m19 and 5 more.")
