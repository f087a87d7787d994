"""Sentences that end in words of others: one full stop, whoever put it there."""

from __future__ import annotations

_DOUBLED = ("..", "!.", "?.", "….")


def one_stop(text: str) -> str:
    """The text without a second full stop at its end: `f"{what}: {error}."` where the error has its own."""
    if text.endswith(_DOUBLED) and not text.endswith("..."):
        return text[:-1]
    return text[:-1] if text.endswith("....") else text
