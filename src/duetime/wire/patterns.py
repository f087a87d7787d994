"""Patterns for texts in a body, and the descriptions that errors show instead of the patterns."""

from __future__ import annotations

from typing import Final

ID: Final = r"^[A-Za-z0-9_.:-]+\Z"  # not $, which would accept a trailing line break
KNOWN_ID: Final = r"^[A-Za-z0-9_.:@-]+\Z"
TYPE: Final = "^[^/]+$"
HEADER: Final = r"^[A-Za-z0-9_.-]+\Z"
RATE: Final = r"^[1-9][0-9]{0,6}/[1-9]?[0-9]{0,4}(ms|s|m|h|d)\Z"
DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\Z"

FORMS: Final = {
    ID: "letters, digits and _ . : - as in order-7",
    KNOWN_ID: "letters, digits and _ . : - @ as in order-7",
    TYPE: "a name without a slash, such as Account",
    HEADER: "letters, digits and _ . - as in x-tenant",
    DATE: "a date such as 2030-12-25",
    RATE: "a rate such as 20/s, 100/m or 5/10s",
}
