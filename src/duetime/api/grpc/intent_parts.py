"""Parts of an intent as messages of gRPC."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from duetime.api.codec import times
from duetime.v1 import intents_pb2 as pb
from duetime.wire.intent import CallbackOut, RedeliveryOut
from duetime.wire.progress import ProgressOut

_BACKOFFS: dict[str, Any] = {"exponential": pb.BACKOFF_EXPONENTIAL, "fixed": pb.BACKOFF_FIXED}


def progress(shown: ProgressOut | None) -> pb.Progress | None:
    if shown is None:
        return None
    return pb.Progress(done=shown.done, total=shown.total, note=shown.note, at_ms=ms(shown.at))


def callback(shown: CallbackOut) -> pb.Callback:
    body = shown.body
    return pb.Callback(
        url=shown.url,
        method=shown.method,
        headers=shown.headers,
        body=body.encode() if isinstance(body, str) else written(body),
        batch=shown.batch,
    )


def redelivery(policy: RedeliveryOut) -> pb.Redelivery:
    return pb.Redelivery(
        max_attempts=policy.max_attempts,
        backoff=_BACKOFFS[policy.backoff],
        initial_delay_ms=policy.initial_delay_ms,
        max_delay_ms=policy.max_delay_ms,
        multiplier=policy.multiplier,
        jitter=policy.jitter,
    )


def ms(shown: str | None) -> Any:
    return None if shown is None else times.read(shown, "")


def written(value: Any) -> bytes | None:
    """A document inside a Struct: bytes that are JSON already, or what still must become it."""
    if value is None:
        return None
    return bytes(value) if isinstance(value, Raw) else msgspec.json.encode(value)
