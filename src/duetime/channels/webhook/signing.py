"""Signatures as Standard Webhooks define them: the receiver can verify the sender and the time of a call."""

from __future__ import annotations

import binascii
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Sequence

from duetime.errors import BadConfig
from duetime.limits import (
    SIGNING_KEY_BYTES_MAX,
    SIGNING_KEY_BYTES_MIN,
    SIGNING_KEY_BYTES_NEW,
    SIGNING_SECRETS_MAX,
)

_PREFIX = "whsec_"
_HINT = "Make one with: echo whsec_$(head -c 32 /dev/urandom | base64)"


class Signer:
    """Signs with one or two secrets, `whsec_` and base64. Two: one replaces the other."""

    def __init__(self, given: Sequence[str]) -> None:
        if not 1 <= len(given) <= SIGNING_SECRETS_MAX:
            raise BadConfig(
                f"There are {len(given)} webhook secrets; at most {SIGNING_SECRETS_MAX} are allowed.",
                hint="Give the new secret, then the one that it replaces.",
            )
        self._keys = [_key(secret) for secret in given]

    def headers(self, id: str, now_ms: int, body: bytes) -> dict[str, str]:
        """The three headers that go with this body. The signatures of several secrets are listed."""
        seconds = str(now_ms // 1000)
        signed = b"%b.%b.%b" % (id.encode(), seconds.encode(), body)
        digests = [b64encode(hmac.digest(key, signed, "sha256")).decode() for key in self._keys]
        return {
            "webhook-id": id,
            "webhook-timestamp": seconds,
            "webhook-signature": " ".join(f"v1,{digest}" for digest in digests),
        }


def new_secret() -> str:
    return _PREFIX + b64encode(secrets.token_bytes(SIGNING_KEY_BYTES_NEW)).decode()


def _key(secret: str) -> bytes:
    if not secret.startswith(_PREFIX):
        raise BadConfig(f"The webhook secret must begin with {_PREFIX}.", hint=_HINT)
    text = secret[len(_PREFIX) :]
    try:
        key = b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise BadConfig(f"The webhook secret is not base64 after {_PREFIX}.", hint=_HINT) from None
    if not SIGNING_KEY_BYTES_MIN <= len(key) <= SIGNING_KEY_BYTES_MAX:
        raise BadConfig(
            f"The webhook secret has {len(key)} bytes; "
            f"{SIGNING_KEY_BYTES_MIN} to {SIGNING_KEY_BYTES_MAX} are needed.",
            hint=_HINT,
        )
    return key
