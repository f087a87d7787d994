"""What the JSON of the API is made of: names are camelCase outside, and what is unknown is refused."""

from __future__ import annotations

from msgspec import Struct


class In(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What is sent in."""


class Out(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is shown."""
