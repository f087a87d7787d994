"""Counts by function: few names one by one, the rest together."""

from __future__ import annotations

from duetime.engine.reads.function_counts import OTHER, FunctionCounts
from duetime.limits import FUNCTION_LABELS_MAX
from duetime.protocol.terms import Bare, Callback, Entity, Stream, Task


def test_tasks_and_messages_are_counted_by_name():
    counts = FunctionCounts()
    task, message = counts.of(Task("send", "mail")), counts.of(Entity("Account", "7", "deposit"))
    assert task is not None and task.labels == ("mail", "send")
    assert message is not None and message.labels == ("", "Account.deposit")
    assert counts.of(Task("send", "mail")) is task and counts.of(Entity("Account", "8", "deposit")) is message
    assert counts.of(Task("send", "other")) is not task
    for target in (Callback("http://x"), Stream("s"), Bare()):
        assert counts.of(target) is None


def test_the_number_of_names_is_bounded():
    counts = FunctionCounts()
    for number in range(2 * FUNCTION_LABELS_MAX):
        row = counts.of(Task(f"t{number}"))
        assert row is not None
        row.outcomes[0] += 1
    rows = counts.rows()
    assert len(rows) == FUNCTION_LABELS_MAX + 1 and rows[-1].labels == OTHER
    assert dict(counts.ended())[(*OTHER, "done")] == FUNCTION_LABELS_MAX
    assert sum(count for _, count in counts.ended()) == 2 * FUNCTION_LABELS_MAX
