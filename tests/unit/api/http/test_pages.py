"""The pages need nothing from elsewhere, and their header allows nothing else."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from hashlib import sha256
from typing import Any

import pytest
from msgspec.json import decode

from duetime.api.http.pages import StaticPage, document_routes
from duetime.cli.commands.receive import PORT as RECEIVER_PORT
from duetime.limits import URL_DEFAULT
from duetime.wire.intent import NewIntent

PAGES = ("docs.html", "home.html")


@pytest.fixture(params=PAGES)
def answer(request):
    return asyncio.run(_get(StaticPage(request.param)))


async def _get(page: StaticPage) -> Any:
    return await page(None)  # type: ignore[arg-type]  # a page does not look at the call


def header(answer: Any, name: bytes) -> str:
    found: bytes = dict(answer.headers)[name]
    return found.decode()


def test_a_page_is_html(answer):
    assert answer.status == 200 and answer.media_type == b"text/html; charset=utf-8"
    assert answer.body.startswith(b"<!doctype html>") and b'lang="en"' in answer.body


def test_a_page_loads_nothing_from_other_hosts(answer):
    # Commands to copy may name this machine: text loads nothing.
    text = re.sub(r"https?://localhost:\d+", "", answer.body.decode())
    assert not re.search(r"https?://|//cdn|@import|url\(", text)
    assert not re.search(r"<(link|img|iframe|object|embed)\b", text)


def test_the_policy_allows_its_own_script_and_style_only(answer):
    policy = header(answer, b"content-security-policy")
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy
    assert "unsafe" not in policy and "http" not in policy
    for tag in ("script", "style"):
        (part,) = re.findall(rf"<{tag}>(.*?)</{tag}>", answer.body.decode(), re.DOTALL)
        digest = base64.b64encode(sha256(part.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_a_page_has_no_inline_code_that_the_policy_blocks(answer):
    markup = re.sub(r"<(script|style)>.*?</\1>", "", answer.body.decode(), flags=re.DOTALL)
    assert not re.search(r"\son\w+=|\sstyle=|javascript:", markup)


def test_values_are_not_inserted_as_markup(answer):
    """What the server or a user says is text on the page, never HTML."""
    assert not re.search(rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", answer.body)


def test_every_field_has_a_label(answer):
    text = answer.body.decode()
    labelled = set(re.findall(r'<label for="(\w+)"', text))
    assert set(re.findall(r'<(?:input|select|textarea) id="(\w+)"', text)) <= labelled


def test_both_pages_have_a_light_and_a_dark_scheme(answer):
    assert b"prefers-color-scheme: dark" in answer.body


def test_the_pages_are_open_and_in_the_document():
    routes = document_routes([])
    assert {route.path for route in routes} == {"/openapi.json", "/docs", "/"}
    assert all(route.role is None for route in routes)


def test_the_first_page_shows_what_to_try():
    text = asyncio.run(_get(StaticPage("home.html"))).body.decode()
    shown = re.findall(r"<pre[^>]*>(.*?)</pre>", text, re.DOTALL)
    assert shown[0] == f"duetime receive --port {RECEIVER_PORT}"
    body = json.loads(shown[1].partition("-d '")[2].removesuffix("'"))
    callback = decode(json.dumps(body), type=NewIntent).callback
    assert callback is not None and callback.url == f"http://localhost:{RECEIVER_PORT}"
    assert f"curl {URL_DEFAULT}/v1/intents " in shown[1] and URL_DEFAULT in text.partition("<script>")[2]
