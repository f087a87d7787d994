"""Words that are banned from the code, each with what to use in its place.

Only code is looked at, not texts and comments. A line may be excused by `# tidy: <reason>`.
"""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

import pytest

from tests.tidy.source import PACKAGE, code_lines, python_files, read, shown, text_files, tree


class Ban(NamedTuple):
    pattern: str
    folders: tuple[str, ...]
    instead: str
    but: tuple[str, ...] = ()


EVERYWHERE = ("src", "tests", "tools")
BANS = (
    Ban(r"\btime\.time(_ns)?\(|from time import", EVERYWHERE, "Clock.now_ms()", ("src/duetime/clock.py",)),
    Ban(r"\bdatetime\.(utc)?now\(", EVERYWHERE, "Clock.now_ms()"),
    Ban(r"\bsleep\(", ("tests",), "an event to wait for, or virtual time of duetime.testing"),
    Ban(r"\brandom\b|\bhash\(", ("src/duetime/kernel",), "zlib.crc32 of the intent and the attempt"),
    Ban(r"\bimport pickle\b|\bfrom pickle\b", EVERYWHERE, "msgspec: a pickle runs whatever is in it"),
    Ban(r"\bos\.system\b|\bshell\s*=\s*True\b", EVERYWHERE, "subprocess.run with a list"),
    Ban(r"(?<![.\w])print\(", ("src",), "duetime.cli.ui.output, or logging", ("src/duetime/cli/",)),
    Ban(
        r"\bos\.(environ|getenv)\b",
        ("src",),
        "duetime.config, which reads it once",
        ("src/duetime/config.py",),
    ),
    Ban(
        r"\bwait_for\(",
        ("src",),
        "asyncio.timeout: wait_for of Python 3.11 forgets a cancel when what it waits for comes just then",
    ),
    Ban(r"\bEvent\(\)\.wait\((?!\)(?!.*timeout=))", ("tests",), "sleep() with a reason: nobody sets it"),
    Ban(
        r"\bhasattr\(|\bgetattr\([\w.]+,\s+, ",
        tuple(f"src/duetime/{room}" for room in ("engine", "log", "store", "channels", "kernel")),
        "an optional Protocol with its contract, checked with isinstance",
    ),
    Ban(r"\.isoformat\(", ("src",), "duetime.timefmt.iso", ("src/duetime/timefmt.py",)),
)


def broken(ban: Ban) -> list[str]:
    return [
        f"{shown(path)}:{number}"
        for path in python_files(*ban.folders)
        if not shown(path).startswith(ban.but)
        for number, line in code_lines(path)
        if re.search(ban.pattern, line)
    ]


@pytest.mark.parametrize("ban", BANS, ids=lambda ban: ban.pattern)
def test_no_banned_word(ban):
    places = broken(ban)
    assert not places, f"/{ban.pattern}/ stands in {places}. Use {ban.instead}."


def test_the_log_knows_nothing_of_retries():
    places = [shown(path) for path in (PACKAGE / "log").rglob("*.py") if "retry" in read(path).lower()]
    assert not places, f"the log keeps bytes in order and nothing else: {places}"


# Written with brackets, so that this file passes its own test.
UNWANTED = {
    r"\bT[O]DO\b|\bF[I]XME\b|\bX[X]X\b": "a word in the docs on what is not there",
    r"(?i)\bt[e]ammates?\b|\bassist[a]nts?\b|\bas requ[e]sted\b|\bin this sess[i]on\b|\bmilest[o]ne": (
        "words about the product; how the work was organised is of no use to its readers"
    ),
    r"/h[o]me/\w|/U[s]ers/\w|/r[o]ot/\w|/w[o]rk/\w": "a path below the repository or a temporary folder",
    r"(?i)py[p]i\.org|python[h]osted\.": "the package's name; where it is fetched from is the user's choice",
}


@pytest.mark.parametrize("pattern", UNWANTED)
def test_no_unwanted_text(pattern):
    places = [
        f"{shown(path)}:{number}"
        for path in text_files()
        for number, line in enumerate(read(path).split("\n"), start=1)
        if re.search(pattern, line)
    ]
    assert not places, f"/{pattern}/ stands in {places}. Use {UNWANTED[pattern]}."


# A name that begins with one of these needs its file to be understood.
RIDDLES = re.compile(r"test_(what|who|whom|whose|whoever|whatever|those|these|it|its|how|that|so|such)_")


def test_names_of_tests_name_their_subject():
    names = [
        f"{shown(path)}:{node.lineno} {node.name}"
        for path in python_files("tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and RIDDLES.match(node.name)
    ]
    assert not names, f"say which thing does what (test_<noun>_<verb>...): {names}"
