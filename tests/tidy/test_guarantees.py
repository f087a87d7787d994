"""Every guarantee names its tests, and they exist."""

from __future__ import annotations

import re

import pytest

from tests.tidy.source import ROOT, read

PROMISES = [f"P{number}" for number in range(1, 11)]
NAMED = re.compile(r"`(tests/[\w/]+\.py)`")


def chapter(promise: str) -> str:
    """The text below the heading of a promise."""
    page = read(ROOT / "docs" / "guarantees.md")
    found = re.search(rf"^## {promise}\. .*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"docs/guarantees.md has no chapter on {promise}"
    return found[0]


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_names_the_tests_that_hold_it(promise):
    held, found, _ = chapter(promise).partition("Not guaranteed:")
    assert found, f"{promise} does not say what is not guaranteed"
    assert NAMED.search(held.partition("Tests:")[2]), f"{promise} names no test"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_every_test_that_is_named_exists(page):
    missing = [name for name in NAMED.findall(read(page)) if not (ROOT / name).is_file()]
    assert not missing, f"{page.name} names tests that are not there: {missing}"


def test_a_named_test_has_tests_in_it():
    """A file without a test would hold nothing. Classes may inherit theirs from a contract or a machine."""
    named = {name for promise in PROMISES for name in NAMED.findall(chapter(promise))}
    empty = [
        name
        for name in sorted(named)
        if not re.search(r"^\s*def test_|^class Test|^Test\w* = ", read(ROOT / name), re.MULTILINE)
    ]
    assert not empty, f"these files hold no test: {empty}"
