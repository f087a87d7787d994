"""One exchange over HTTP: a request out, an answer back or the reason why there is none.

The answer is not trusted: its size, its speed and its form are bounded. Redirects are not followed,
cookies not kept, bodies not decompressed, and the HTTP library never repeats a request on its own.
"""

from __future__ import annotations

import ssl

import aiohttp
from aiohttp import ClientTimeout
from multidict import CIMultiDict

from duetime.channels.webhook.addresses import AddressRefused, GuardedResolver
from duetime.channels.webhook.answers import WebhookResponse, readable
from duetime.channels.webhook.calls import CallPlan
from duetime.limits import NAMES_KEPT_S, WEBHOOK_KEEPALIVE_S
from duetime.protocol.outcome import Failed, Rejected


class Sender:
    """Holds the connections. Created on the loop that uses it."""

    def __init__(self, guarded: bool, response_bytes_max: int, tls: ssl.SSLContext | None) -> None:
        self._bytes_max = response_bytes_max
        self._resolver = GuardedResolver(guarded)
        connector = aiohttp.TCPConnector(
            limit=0,  # each host counts its own
            ttl_dns_cache=NAMES_KEPT_S,
            keepalive_timeout=WEBHOOK_KEEPALIVE_S,
            resolver=self._resolver,
            ssl=tls or True,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Content-Type"),
            trust_env=False,
        )
        # aiohttp repeats PUT and similar requests when a connection breaks. Whether an intent may be
        # delivered twice is not its decision.
        self._session._retry_connection = False

    async def send(
        self, plan: CallPlan, headers: CIMultiDict[str], body: bytes | None, timeout: ClientTimeout
    ) -> WebhookResponse | Failed | Rejected:
        """Carry out one request. Raises only the cancellation of the task, and bugs."""
        try:
            response = await self._session.request(
                plan.method, plan.url, headers=headers, data=body, timeout=timeout, allow_redirects=False
            )
        except (aiohttp.ClientError, AddressRefused, TimeoutError, OSError) as error:
            return failure(error)
        length = response.content_length
        if length is not None and length <= self._bytes_max:
            try:
                text, whole = await response.read(), True
            except (aiohttp.ClientError, TimeoutError, OSError):
                text, whole = b"", False
        else:
            text, whole = await self._read(response)
        return WebhookResponse(response.status, text, whole, response.headers.get("Retry-After"))

    async def close(self) -> None:
        await self._session.close()
        await self._resolver.close()

    async def _read(self, response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
        """The body up to the limit, and whether it is complete. The rest is cut off."""
        parts: list[bytes] = []
        size = 0
        whole = False
        try:
            while size <= self._bytes_max:
                part = await response.content.readany()
                if not part:
                    whole = True
                    break
                parts.append(part)
                size += len(part)
        except (aiohttp.ClientError, TimeoutError, OSError):
            pass
        finally:
            if whole:
                response.release()
            else:
                response.close()
        return b"".join(parts)[: self._bytes_max], whole


def failure(error: BaseException) -> Failed | Rejected:
    """Why there is no answer, as one stable word and a sentence."""
    text = readable(str(error) or type(error).__name__)
    if isinstance(error, AddressRefused):
        return Rejected("address", text)
    if isinstance(error, aiohttp.InvalidURL):
        return Rejected("address", f"the url cannot be used: {text}")
    if isinstance(error, TimeoutError):
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return Failed("timeout", f"no connection in time: {text}")
        return Failed("timeout", "no answer in time")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return Failed("dns", text)
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError):
        return Failed("tls", text)
    if isinstance(error, aiohttp.ClientConnectionError | OSError):
        return Failed("connect", text)
    return Failed("protocol", text)
