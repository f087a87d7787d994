"""The stories in this folder, told again: commands above the dashes, what comes of them below.

`pytest tests/scenarios --rewrite` writes what happens now; look at the difference before keeping it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.teller import Teller

STORIES = sorted(Path(__file__).parent.glob("*.txt"))
DASHES = "----"


def told_again(text: str) -> str:
    """The story with the answers of today."""
    teller = Teller()
    teller.play([])
    blocks = []
    for block in text.strip().split("\n\n"):
        lines = block.split("\n")
        if all(line.startswith("#") for line in lines):
            blocks.append(block)
            continue
        above = lines[: lines.index(DASHES)] if DASHES in lines else lines
        commands = [line for line in above if not line.startswith("#")]
        blocks.append("\n".join([*above, DASHES, *teller.play(commands)]))
    return "\n\n".join(blocks) + "\n"


@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem)
def test_story(story, rewrite):
    text = story.read_text("utf-8")
    today = told_again(text)
    if rewrite:
        story.write_text(today, "utf-8")
    else:
        assert today == text, "if this is what should happen: pytest tests/scenarios --rewrite"


@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.stem)
def test_a_story_begins_with_what_it_is_about(story):
    assert story.read_text("utf-8").startswith("# ")


def test_a_story_that_is_not_true_is_noticed():
    text = "# Wrong.\n\nsubmit a\n----\ndeliver b#1\n"
    assert told_again(text) != text
