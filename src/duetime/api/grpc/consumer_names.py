"""Names of connections that take deliveries. The kernel checks outcomes by them, so clients cannot choose
them.

A name has three parts: the name that the client gave, a mark of its token, and random digits. A client that
reconnects gets a new name. It can still settle the deliveries of its earlier connections: it sends their
names, and the mark proves that they had the same token.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable

from duetime.errors import InvalidField
from duetime.limits import EARLIER_NAMES_MAX

_CONSUMER_CHARS_MAX = 100
_MARK_BYTES = 4
_RANDOM_BYTES = 6
NAME_BYTES_MAX = 4 * _CONSUMER_CHARS_MAX + 1 + 2 * (_MARK_BYTES + _RANDOM_BYTES)


def new(consumer: str, bearer: str) -> str:
    """A name for a connection with this token (its hash; empty: no token was required)."""
    if not (1 <= len(consumer) <= _CONSUMER_CHARS_MAX and consumer.isprintable()):
        raise InvalidField(f"A consumer's name has 1 to {_CONSUMER_CHARS_MAX} printable characters.")
    return f"{consumer}~{_mark(bearer)}{secrets.token_hex(_RANDOM_BYTES)}"


def own(names: Iterable[str], bearer: str) -> tuple[str, ...]:
    """Those of the names that belong to this token; only the newest if there are too many."""
    mark = _mark(bearer)
    return tuple(name for name in names if name.rpartition("~")[2].startswith(mark))[-EARLIER_NAMES_MAX:]


def _mark(bearer: str) -> str:
    return hashlib.blake2b(bearer.encode(), digest_size=_MARK_BYTES).hexdigest()
