"""The id of a submitted intent, or the error that was its answer."""

from __future__ import annotations

from duetime.protocol.intent import Intent
from duetime.protocol.reply import Existing
from duetime.refusals import Submitted


def id_of(submitted: Submitted) -> str:
    """The id of the intent that a submit made or found; an error is raised."""
    if isinstance(submitted, Intent):
        return submitted.id
    if isinstance(submitted, Existing):
        return submitted.intent.id
    raise submitted
