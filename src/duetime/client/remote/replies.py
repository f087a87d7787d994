"""What an engine answered, as an id or an error."""

from __future__ import annotations

from duetime import errors
from duetime.protocol.intent import Intent
from duetime.protocol.reply import Existing, Refusal, Reply


def id_of(reply: Reply) -> str:
    """The intent a submit made or found; a refusal is raised."""
    if type(reply) is Intent:
        return reply.id
    if isinstance(reply, Refusal):
        raise errors.made(reply.error, reply.message, reply.details)
    assert type(reply) is Existing
    return reply.intent.id
