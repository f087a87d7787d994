"""A cache with a bound, for values that can be made again."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(dict[K, V]):
    """A dict that is cleared when it is full: the values in use are soon back in it.

    A hit costs no more than `dict.get`. To cache by the identity of an object, such as terms, the key is its
    `id()` and the value contains the object: an id is not reused while its object lives.
    """

    __slots__ = ("_bytes", "_bytes_max", "_count_max")

    def __init__(self, count_max: int, bytes_max: int = 0) -> None:
        """`bytes_max`: the bound of all sizes that are given to `keep`."""
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._bytes = 0

    def keep(self, key: K, value: V, size: int = 0) -> None:
        """Store a value that was not found. `size`: its bytes, if they matter."""
        if len(self) >= self._count_max or self._bytes + size > self._bytes_max:
            self.clear()
        self._bytes += size
        self[key] = value

    def clear(self) -> None:
        super().clear()
        self._bytes = 0
