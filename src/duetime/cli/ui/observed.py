"""Ids that were shown recently, for completion in the shell."""

from __future__ import annotations

from duetime.limits import SHOWN_IDS_KEPT

_ids: dict[str, None] = {}


def add(id: str) -> None:
    """Remember that this id was shown."""
    _ids.pop(id, None)
    _ids[id] = None
    if len(_ids) > SHOWN_IDS_KEPT:
        del _ids[next(iter(_ids))]


def newest_first() -> list[str]:
    return list(reversed(_ids))
