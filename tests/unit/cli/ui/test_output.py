"""What is shown comes from others, too: it must not make a terminal do anything."""

from __future__ import annotations

import json

import msgspec
import pytest

from duetime.cli.ui import output
from duetime.errors import DuetimeError
from duetime.safe_text import plain

EVIL = "\x1b[31mred\x1b]0;title\x07 \x9b2J \x7f \x00 \r\n \u202e\u2066\u2028 [blue]x[/]"


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
        lambda: output.json_part(msgspec.json.encode(EVIL)),
        lambda: output.table([EVIL], [["x"]]),
    ],
    ids=["text", "table", "facts", "title", "line", "words", "fail", "json", "json_line", "part", "heading"],
)
def test_control_characters_are_written_out(show, capsys):
    show()
    shown = "".join(capsys.readouterr())
    assert "red" in shown and "[blue]x[/]" in shown
    assert all(plain(line) == line for line in shown.split("\n")), repr(shown)
    assert shown.count("\n") <= 3 and "\\n" in shown
    assert "x1b" in shown or "u001b" in shown


def test_json_says_the_same(capsys):
    output.json({"a": EVIL})
    assert json.loads(capsys.readouterr().out) == {"a": EVIL}
