"""A transition as `duetime follow` shows it."""

from __future__ import annotations

import pytest

from duetime.cli.commands import follow
from duetime.timefmt import moment_of
from duetime.wire.event import Transition


@pytest.mark.parametrize(
    ("status", "late"), [("SCHEDULED", False), ("DUE", False), ("DISPATCHING", True), ("ACKED", True)]
)
def test_only_what_was_handed_out_is_late(status, late, capsys):
    event = Transition(
        intent_id="order-7", status=status, at=moment_of(1_900_000_000_000), precision_tier="FAST",
        lane="task:mail", late_ms=0,
    )  # fmt: skip
    follow.show(event, as_json=False)
    assert ("0 ms late" in capsys.readouterr().out) is late
