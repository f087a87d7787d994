"""The lanes of a server: page after page, or all at once from a server that knows no pages."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from duetime.client.http.client import lanes_of
from duetime.client.http.transport import Request, Transport
from duetime.errors import BadQuery


class Scripted(Transport):
    """Answers with these, and keeps what was asked."""

    def __init__(self, *answers: dict[str, Any] | BadQuery) -> None:
        super().__init__("http://localhost:1", None)
        self._script = list(answers)
        self.asked: list[dict[str, str]] = []

    async def send(self, request: Request, tries: int | None = None) -> bytes:
        self.asked.append(dict(request.query))
        answer = self._script.pop(0)
        if isinstance(answer, BadQuery):
            raise answer
        return msgspec.json.encode(answer)


def page(*names: str, **more: Any) -> dict[str, Any]:
    return {"lanes": [{"name": name} for name in names], **more}


def names(transport: Scripted, *, entities: bool) -> list[str]:
    async def found() -> list[str]:
        return [lane["name"] async for lane in lanes_of(transport, entities=entities)]

    return asyncio.run(found())


def test_page_after_page():
    transport = Scripted(page("task:a", nextCursor="task:a"), page("task:b", nextCursor=None))
    assert names(transport, entities=False) == ["task:a", "task:b"]
    assert transport.asked == [{"entities": "false"}, {"entities": "false", "cursor": "task:a"}]


def test_an_older_server_is_asked_for_all():
    shown = page("task:a", "entity:cart/1", "entities:cart")
    transport = Scripted(BadQuery("Unknown query parameter 'entities'."), shown)
    assert names(transport, entities=False) == ["task:a", "entities:cart"]
    assert transport.asked == [{"entities": "false"}, {}]
    transport = Scripted(shown)
    assert names(transport, entities=True) == ["task:a", "entity:cart/1", "entities:cart"]
    assert transport.asked == [{}]


def test_a_place_that_is_not_understood_is_no_sign_of_an_older_server():
    with pytest.raises(BadQuery):
        names(Scripted(page("task:a", nextCursor="x"), BadQuery("cursor")), entities=True)
