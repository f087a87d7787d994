"""What is shown comes from others, too: it must not make a terminal do anything."""

from __future__ import annotations

import json

import pytest

from duetime.cli import output
from duetime.errors import DuetimeError

EVIL = "\x1b[31mred\x1b]0;title\x07 \x9b2J \x7f \x00 \r"
CONTROL = {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))}


@pytest.mark.parametrize(
    "show",
    [
        lambda: output.text(EVIL),
        lambda: output.table(["a", "b"], [[EVIL, 1], ["x", EVIL]]),
        lambda: output.facts({"name": EVIL, EVIL: "value"}),
        lambda: output.title(EVIL),
        lambda: output.line(EVIL, (EVIL, "red")),
        lambda: output.words(EVIL),
        lambda: output.fail(DuetimeError(EVIL, hint=EVIL)),
        lambda: output.json({"a": EVIL, EVIL: [EVIL]}),
        lambda: output.json_line(EVIL),
    ],
    ids=["text", "table", "facts", "title", "line", "words", "fail", "json", "json_line"],
)
def test_control_characters_are_written_out(show, capsys):
    show()
    shown = "".join(capsys.readouterr())
    assert "red" in shown and not CONTROL & set(shown), repr(shown)
    assert "x1b" in shown or "u001b" in shown


def test_json_says_the_same(capsys):
    output.json({"a": EVIL})
    assert json.loads(capsys.readouterr().out) == {"a": EVIL}


def test_usual_text_is_as_it_was(capsys):
    text = "Grüße, 世界 \U0001f600\n\ttab"
    assert output.plain(text) == text
