"""The tidy tests themselves: a check that cannot fail is none."""

from __future__ import annotations

import re

import pytest

from tests.tidy.source import code_lines
from tests.tidy.test_words import BANS


@pytest.mark.parametrize(
    ("line", "index"),
    [
        ("now = time.time()", 0),
        ("now = time.time_ns()", 0),
        ("from time import monotonic", 0),
        ("now = datetime.now(UTC)", 1),
        ("await asyncio.sleep(1)", 2),
        ("import random", 3),
        ("key = hash(intent)", 3),
        ("import pickle", 4),
        ("run(command, shell=True)", 5),
        ("    print(1)", 6),
        ("os.environ['A']", 7),
        ("threading.Event().wait(7)", 9),
        ("await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=1.5)", 9),
        ('own = hasattr(clock, "alarm")', 10),
        ("room = getattr(self._log,       , None)", 10),
        ("text = moment.isoformat()", 11),
    ],
)
def test_a_banned_word_is_seen(line, index):
    assert re.search(BANS[index].pattern, line)


@pytest.mark.parametrize(
    ("line", "index"),
    [
        ("console.print(1)", 6),
        ("self.rehash(1)", 3),
        ("time.monotonic()", 0),
        ("await asyncio.Event().wait()", 9),
        ("assert go_on.wait(20)", 9),
        ("value = getattr(patch, name)", 10),
        ("day = date.fromisoformat(word)", 11),
    ],
)
def test_an_innocent_line_is_not(line, index):
    assert not re.search(BANS[index].pattern, line)


EXAMPLE = '''"""Never call
sleep(1) here."""
x = 1  # not sleep(2)
y = f"sleep({x})"
sleep(3)
sleep(4)  # tidy: a reason
'''
CODE_OF_EXAMPLE = [(3, "x = 1"), (4, "y ="), (5, "sleep(3)")]


def test_only_code_is_looked_at(tmp_path):
    file = tmp_path / "example.py"
    file.write_text(EXAMPLE, "utf-8")
    assert [(number, line.rstrip()) for number, line in code_lines(file)] == CODE_OF_EXAMPLE
