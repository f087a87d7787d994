"""Decodes the JSON of a row for an engine in this process, with the code that a server uses."""

from __future__ import annotations

import msgspec

from duetime.api.codec.intent_decoder import Composer, Defaults
from duetime.api.http import problems
from duetime.errors import NotJson
from duetime.protocol.intent import Item
from duetime.protocol.terms import Terms, Tier
from duetime.wire.intent import NewIntent

_new = msgspec.json.Decoder(NewIntent)


class Composing:
    """Converts rows into terms and items."""

    def __init__(self, default_tier: str = "STANDARD", payload_bytes_max: int | None = None) -> None:
        defaults = Defaults(tier=Tier[default_tier.upper()])
        if payload_bytes_max is not None:
            defaults = msgspec.structs.replace(defaults, payload_bytes_max=payload_bytes_max)
        self._composer = Composer(defaults)

    def item(self, body: bytes, now_ms: int) -> tuple[Terms, Item]:
        """Raises an error with the path of the field if the body is invalid."""
        try:
            new = _new.decode(body)
        except msgspec.ValidationError as error:
            raise problems.invalid(str(error), "$", NewIntent) from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise NotJson(f"The value is not JSON: {error}.") from None
        return self._composer.terms(new), self._composer.item(new, 0, now_ms)
