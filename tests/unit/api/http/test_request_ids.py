"""A request id is its sender's own: what another token was answered is given to nobody else."""

from __future__ import annotations

import asyncio
from contextvars import copy_context

import pytest

from duetime.api.access.quotas import bearer
from duetime.api.http.endpoint import Call
from duetime.api.http.exchange import Answer, Head
from duetime.api.http.request_ids import Repeats, request_id
from duetime.errors import InvalidField, KeyReused
from duetime.testing.time import ManualClock


def call(id: str, body: bytes = b"{}") -> Call:
    return Call(Head("POST", "/v1/x", b"", [(b"x-duetime-request-id", id.encode())]), body)


def name(token: str, id: str) -> str | None:
    def asked() -> str | None:
        bearer.set(token)
        return request_id(call(id))

    return copy_context().run(asked)


def test_an_answer_is_repeated_to_its_own_token_only():
    async def main() -> None:
        repeats, done = Repeats(ManualClock()), 0

        async def handler(call: Call) -> Answer:
            nonlocal done
            done += 1
            return Answer(b"%d" % done)

        async def ask(token: str, body: bytes = b"{}") -> bytes:
            bearer.set(token)
            return (await repeats.once(call("r", body), handler)).body

        def asked(token: str, body: bytes = b"{}") -> asyncio.Task[bytes]:
            return asyncio.create_task(ask(token, body))  # in a context of its own, as every request

        assert [await asked(token) for token in ("", "a" * 64, "b" * 64)] == [b"1", b"2", b"3"]
        assert [await asked(token) for token in ("", "a" * 64, "b" * 64)] == [b"1", b"2", b"3"]
        assert await asked("c" * 64, b"[]") == b"4", "nor is it in anybody's way"
        with pytest.raises(KeyReused, match="id 'r' was"):
            await asked("a" * 64, b"[]")

    asyncio.run(main())


def test_the_engine_knows_requests_by_their_token_too():
    names = {name(token, id) for token in ("", "a" * 64, "b" * 64) for id in ("r", "s")}
    assert len(names) == 6
    assert name("", "r") == "r"


def test_an_id_cannot_pretend_to_be_another_tokens():
    with pytest.raises(InvalidField):
        name("", f"{'a' * 16}\nr")
