"""Turn rows of the SQLite file into intents. Owns the terms that many of them share."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import msgspec

from duetime.errors import Damaged
from duetime.protocol.intent import Intent
from duetime.protocol.terms import Terms
from duetime.store.sqlite import rows
from duetime.store.sqlite.rows import Row

_TERMS_KEPT = 4_096

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Intent).decode


class Warming:
    """Reads rows. Damage is raised with its place, never returned."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._terms: dict[bytes, Terms] = {}

    def intent(self, row: Row) -> Intent:
        body = row[14]
        intent = _decode(body) if type(body) is bytes and crc32(body) == row[13] else None
        if intent is None or rows.columns(intent) != row[:13]:
            raise Damaged(f"{self._path}: the row {row[0]} of the table intents does not match its checksum.")
        intent.armed = intent.cycle = 0
        if intent.wake_at_ms == intent.execute_at_ms:
            intent.wake_at_ms = intent.execute_at_ms  # one object for both
        # Many intents share their terms: one object serves all of them.
        key = _encode(intent.terms)
        known = self._terms.get(key)
        if known is None:
            if len(self._terms) >= _TERMS_KEPT:
                self._terms.clear()
            self._terms[key] = intent.terms
        else:
            intent.terms = known
        return intent
