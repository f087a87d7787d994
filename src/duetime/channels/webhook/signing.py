"""Signatures as Standard Webhooks define them: the receiver can verify the sender and the time of a call."""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode

from duetime.errors import BadConfig
from duetime.limits import SIGNING_KEY_BYTES_MAX, SIGNING_KEY_BYTES_MIN

_PREFIX = "whsec_"
_HINT = "Make one with: echo whsec_$(head -c 32 /dev/urandom | base64)"


class Signer:
    """Signs with one secret, `whsec_` and base64."""

    def __init__(self, secret: str) -> None:
        if not secret.startswith(_PREFIX):
            raise BadConfig(f"The webhook secret must begin with {_PREFIX}.", hint=_HINT)
        text = secret[len(_PREFIX) :]
        try:
            self._key = b64decode(text + "=" * (-len(text) % 4), validate=True)
        except (binascii.Error, ValueError):
            raise BadConfig(f"The webhook secret is not base64 after {_PREFIX}.", hint=_HINT) from None
        if not SIGNING_KEY_BYTES_MIN <= len(self._key) <= SIGNING_KEY_BYTES_MAX:
            raise BadConfig(
                f"The webhook secret has {len(self._key)} bytes; "
                f"{SIGNING_KEY_BYTES_MIN} to {SIGNING_KEY_BYTES_MAX} are needed.",
                hint=_HINT,
            )

    def headers(self, id: str, now_ms: int, body: bytes) -> dict[str, str]:
        """The three headers that go with this body."""
        seconds = str(now_ms // 1000)
        digest = hmac.digest(self._key, b"%b.%b.%b" % (id.encode(), seconds.encode(), body), "sha256")
        return {
            "webhook-id": id,
            "webhook-timestamp": seconds,
            "webhook-signature": "v1," + b64encode(digest).decode(),
        }
