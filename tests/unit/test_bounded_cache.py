"""A full cache is cleared, by count or by bytes."""

from __future__ import annotations

from duetime.bounded_cache import BoundedCache


def test_as_many_values_are_kept_as_the_count_allows():
    cache = BoundedCache[int, str](3)
    for number in range(3):
        cache.keep(number, str(number))
    assert cache == {0: "0", 1: "1", 2: "2"}
    cache.keep(3, "3")
    assert cache == {3: "3"}


def test_as_many_values_are_kept_as_the_bytes_allow():
    cache = BoundedCache[str, bytes](100, bytes_max=10)
    cache.keep("a", b"", 6)
    cache.keep("b", b"", 4)
    assert set(cache) == {"a", "b"}
    cache.keep("c", b"", 1)
    assert set(cache) == {"c"}
    cache.keep("d", b"", 9)
    assert set(cache) == {"c", "d"}, "the bytes of dropped values do not count"


def test_a_cleared_cache_has_room_again():
    cache = BoundedCache[str, int](100, bytes_max=10)
    cache.keep("a", 1, 10)
    cache.clear()
    cache.keep("b", 2, 5)
    cache.keep("c", 3, 5)
    assert set(cache) == {"b", "c"}
