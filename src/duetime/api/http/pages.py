"""The pages of the server: /docs, which shows the OpenAPI document, and / with status and links.

Each page is one file without external resources. Its Content-Security-Policy allows only its own script and
style, and connections to this server.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

from duetime.api.http.endpoint import Call
from duetime.api.http.exchange import Answer
from duetime.api.http.openapi import OpenApi
from duetime.api.http.router import Route
from duetime.json_types import Json

_FOLDER: Final = Path(__file__).parent / "html"
_HTML: Final = "text/html"


class StaticPage:
    """A page of the folder, read at the first request."""

    def __init__(self, name: str) -> None:
        self._path = _FOLDER / name
        self._answer: Answer | None = None

    async def __call__(self, call: Call) -> Answer:
        if self._answer is None:
            body = self._path.read_bytes()
            self._answer = Answer(body, headers=_headers(body), media_type=b"text/html; charset=utf-8")
        return self._answer


def document_routes(routes: Sequence[Route]) -> list[Route]:
    """The routes of the OpenAPI document and of the pages. The document contains them too."""
    described: list[Route] = list(routes)
    own = partial(Route, method="GET", role=None, tag="Pages")
    found = [
        own(
            path="/openapi.json", handler=OpenApi(described), name="getOpenApi",
            summary="This document", answers={200: Json},
        ),
        own(
            path="/docs", handler=StaticPage("docs.html"), name="getDocs", media_type=_HTML,
            summary="This document as a page", answers={200: str},
        ),
        own(
            path="/", handler=StaticPage("home.html"), name="getHome", media_type=_HTML,
            summary="Status page with links", answers={200: str},
        ),
    ]  # fmt: skip
    described += found
    return found


def _headers(body: bytes) -> list[tuple[bytes, bytes]]:
    policy = (
        f"default-src 'none'; script-src {_hashes(body, b'script')}; style-src {_hashes(body, b'style')}; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return [
        (b"content-security-policy", policy.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", b"no-cache"),
    ]


def _hashes(body: bytes, tag: bytes) -> str:
    """The hashes of the text between the tags, as the browser computes them."""
    parts = re.findall(b"<%b>(.*?)</%b>" % (tag, tag), body, re.DOTALL)
    return " ".join(f"'sha256-{base64.b64encode(sha256(part).digest()).decode()}'" for part in parts)
