"""The HTTP request of a webhook: method, headers and body, made from an intent's terms.

Everything that is the same for all intents of the same terms is made once, in a `CallPlan`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.metadata import version

import msgspec
from aiohttp import ClientTimeout
from multidict import CIMultiDict
from yarl import URL

from duetime.channels.webhook.addresses import problem_with, refused
from duetime.limits import TIER_NAMES
from duetime.protocol.effect import Deliver
from duetime.protocol.outcome import Rejected
from duetime.protocol.terms import Callback, Terms
from duetime.timefmt import iso_second

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSENDABLE = re.compile(r"[^\t\x20-\x7e\x80-\ud7ff\ue000-\U0010ffff]")
_TRACEPARENT = re.compile(r"[0-9A-Za-z-]{1,256}")
# Headers of an intent that continue a trace at the receiver (W3C Trace Context and Baggage).
_PROPAGATED = ("tracestate", "baggage")
# These headers define where a message ends; users cannot set them.
_FRAMING = frozenset(
    ("connection", "content-length", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)
BODILESS = frozenset(("GET", "HEAD"))
"""Methods whose requests have no body."""
_encode = msgspec.json.encode
# A body in which tier and tags are the same for all intents of a plan.
_BODY = (
    b'{"intentId":%%b,"precisionTier":"%b","delivery":%%d,"attempt":%%d,"executeAt":"%%b.%%03dZ",'
    b'"lateMs":%%d,"payload":%%b,"tags":%b%%b}'
)
_NO_PARENTS = b'"parents":[],"moreParents":false'

GroupKey = tuple[str, str, tuple[tuple[str, str], ...], int]


class CallPlan:
    """How the callbacks of one set of terms are sent."""

    __slots__ = (
        "batch", "body", "endpoint", "group", "headers", "method", "origin", "parents", "place", "problem",
        "template", "tier", "timeout", "url",
    )  # fmt: skip

    def __init__(self, terms: Terms, callback: Callback, connect_s: float, guarded: bool) -> None:
        self.problem: Rejected | None = None
        problem = problem_of(callback)
        if problem is not None:
            self.problem = Rejected(*problem)
            return
        self.url = URL(callback.url)
        if guarded and (reason := refused(self.url.raw_host or "")):
            self.problem = Rejected("address", reason)
            return
        self.origin = str(self.url.origin())
        self.endpoint = self.origin + self.url.raw_path
        self.method = callback.method.upper()
        self.batch = callback.batch
        self.tier = int(terms.tier)
        self.place = (self.endpoint, self.tier)
        self.timeout = time_limit(terms.timeout_ms, connect_s)
        self.body = callback.body
        self.parents = callback.parents
        self.headers = _headers_of(callback, self.sends_body)
        self.template = _BODY % (_quoted(TIER_NAMES[self.tier].encode()), _quoted(_encode(terms.tags or {})))
        self.group: GroupKey | None = None
        if callback.batch:
            headers = tuple(sorted((callback.headers or {}).items()))
            self.group = (callback.url, self.method, headers, self.tier)

    @property
    def sends_body(self) -> bool:
        return self.body is not None or self.method not in BODILESS

    def body_of(self, delivery: Deliver, waited_ms: int = 0) -> bytes:
        """The body of this delivery: the callback's own body, or the intent with its lateness at the call."""
        if self.body is not None:
            return self.body
        at_ms, attempt = delivery.execute_at_ms, delivery.attempt
        return self.template % (
            _encode(delivery.id),
            delivery.delivery,
            attempt,
            _second(at_ms // 1000),
            at_ms % 1000,
            delivery.late_ms + waited_ms if attempt == 1 else delivery.late_ms,
            delivery.payload or b"null",
            b"," + (delivery.parents or _NO_PARENTS) if self.parents else b"",
        )

    def headers_of(self, delivery: Deliver) -> CIMultiDict[str]:
        """The headers of this delivery."""
        headers = self.headers.copy()
        headers["X-Duetime-Intent-Id"] = delivery.id
        headers["X-Duetime-Delivery"] = str(delivery.delivery)
        if delivery.traceparent is not None and _TRACEPARENT.fullmatch(delivery.traceparent):
            headers["traceparent"] = delivery.traceparent
        if delivery.headers is not None:
            for name in _PROPAGATED:
                value = delivery.headers.get(name)
                if value is not None and not _UNSENDABLE.search(value):
                    headers[name] = value
        return headers

    def headers_of_batch(self, size: int) -> CIMultiDict[str]:
        """The headers of a batch."""
        headers = self.headers.copy()
        headers["X-Duetime-Batch-Size"] = str(size)
        return headers


def _quoted(text: bytes) -> bytes:
    """Text escaped for use in a template."""
    return text.replace(b"%", b"%%")


def problem_of(callback: Callback) -> tuple[str, str] | None:
    """What is wrong with a callback, as a kind and a sentence. The same is checked before every delivery."""
    problem = problem_with(callback.url)
    if problem is not None:
        return "address", problem
    if (
        not _TOKEN.fullmatch(callback.method)
        or len(callback.method) > 32
        or callback.method.upper() == "CONNECT"
    ):
        return "protocol", f"The method {callback.method[:32]!r} cannot be sent."
    for name, value in (callback.headers or {}).items():
        if not _TOKEN.fullmatch(name):
            return "protocol", f"The header name {name[:64]!r} cannot be sent."
        if _UNSENDABLE.search(value):
            return "protocol", f"The header {name[:64]} has a control character in its value."
        if name.lower() in _FRAMING:
            return (
                "protocol",
                f"The header {name[:64]} cannot be set: it is for the connection, not the call.",
            )
    if callback.parents and (callback.body is not None or callback.method.upper() in BODILESS):
        return "protocol", "The parents are part of the default body, and this callback does not send it."
    if callback.batch:
        if callback.method.upper() in BODILESS:
            return "protocol", f"A batch is sent in a body, which {callback.method.upper()} has not."
        if callback.body is not None and not is_json(callback.body):
            return "protocol", "A batched callback's body must be JSON: it becomes an item of an array."
    return None


def is_json(text: bytes) -> bool:
    """Whether these bytes are one JSON value."""
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return False
    return True


def time_limit(total_ms: int, connect_s: float) -> ClientTimeout:
    """The time limits of the whole call, and of connecting."""
    total_s = total_ms / 1000
    return ClientTimeout(total=total_s, connect=min(connect_s, total_s))


def _headers_of(callback: Callback, sends_body: bool) -> CIMultiDict[str]:
    headers = CIMultiDict({"User-Agent": f"Duetime/{_version()}", "Accept-Encoding": "identity"})
    if sends_body:
        headers["Content-Type"] = "application/json"
    for name, value in (callback.headers or {}).items():
        headers[name] = value
    return headers


@lru_cache(maxsize=1)
def _version() -> str:
    return version("duetime")


@lru_cache(maxsize=4096)
def _second(seconds: int) -> bytes:
    return iso_second(seconds).encode()
