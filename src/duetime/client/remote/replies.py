"""The id of a submitted intent, or the error of its submit."""

from __future__ import annotations

from duetime.protocol.intent import Intent
from duetime.protocol.reply import Existing
from duetime.refusals import Submitted


def id_of(submitted: Submitted) -> str:
    """The id of the intent that a submit created or found. An error is raised."""
    if isinstance(submitted, Intent):
        return submitted.id
    if isinstance(submitted, Existing):
        return submitted.intent.id
    raise submitted
