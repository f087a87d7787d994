"""When finished intents are forgotten: by age and by count. Owns `state.marks`."""

from __future__ import annotations

from duetime.kernel.commands import leap
from duetime.kernel.state import State
from duetime.limits import MINUTE_MS
from duetime.protocol.checkpoint import Marks

# By count, the marks move in steps, so that intents are not forgotten one by one.
_STEP = 1_000


def apply(state: State) -> None:
    """Move the marks as far as the trusted time and the settings allow. They never move back."""
    settings, old = state.settings, state.marks
    if state.doubt_ms:
        leap.believe(state)
    at_ms = state.believed_ms()
    minute_ms = at_ms - at_ms % MINUTE_MS
    finished_before_ms = minute_ms - settings.retention_ms
    dead_before_ms = minute_ms - settings.dead_letter_retention_ms
    ended_to = (state.ended - settings.retention_count) // _STEP * _STEP
    key_before_ms = minute_ms - settings.key_window_ms
    if (
        finished_before_ms <= old.finished_before_ms
        and key_before_ms <= old.key_before_ms
        and ended_to <= old.ended_to
        and dead_before_ms <= old.dead_before_ms
    ):
        return
    state.marks = Marks(
        finished_before_ms=max(old.finished_before_ms, finished_before_ms),
        dead_before_ms=max(old.dead_before_ms, dead_before_ms),
        ended_to=max(old.ended_to, ended_to),
        key_before_ms=max(old.key_before_ms, key_before_ms),
    )
    state.store.forget(state.marks)
