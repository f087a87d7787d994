"""Pages of a server: one that is not full because one request looks only so far is asked for again."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from duetime import Client
from duetime.client.http.transport import Request
from duetime.wire.intent import Intent, Page, Status


class Scripted(Client):
    """Answers with these pages, and keeps what was asked."""

    def __init__(self, *pages: Page) -> None:
        super().__init__("http://localhost:1")
        self._script = list(pages)
        self.asked: list[dict[str, str]] = []

    async def _ask(self, request: Request, kind: Any) -> Any:
        self.asked.append(dict(request.query))
        return self._script.pop(0)


def intents(*ids: str) -> list[Intent]:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        Intent(intent_id=id, status=Status.DUE, execute_at=at, created_at=at, updated_at=at) for id in ids
    ]


def test_a_page_is_filled():
    client = Scripted(
        Page([], "c1", partial=True),
        Page(intents("a"), "c2", partial=True),
        Page(intents("b", "c"), "c3"),
    )
    page = asyncio.run(client.page("/v1/intents", [("task", "x")], 3, None))
    assert ([each.intent_id for each in page.items], page.next_cursor) == (["a", "b", "c"], "c3")
    assert [(asked["limit"], asked.get("cursor")) for asked in client.asked] == [
        ("3", None), ("3", "c1"), ("2", "c2"),
    ]  # fmt: skip


def test_a_short_page_is_the_end():
    client = Scripted(Page(intents("a"), None))
    page = asyncio.run(client.page("/v1/intents", [], 3, None))
    assert (len(page.items), page.next_cursor, len(client.asked)) == (1, None, 1)
