"""A large submit is cut into parts that fit a frame."""

from __future__ import annotations

import pytest

from duetime.engine.admission.chunks import chunks
from duetime.limits import CHUNK_BYTES_MAX, CHUNK_ITEMS_MAX
from duetime.protocol.intent import Item


def items(*places: int, payload: bytes = b"") -> tuple[Item, ...]:
    return tuple(Item(f"i{number}", place, 5, payload) for number, place in enumerate(places))


def test_a_small_one_is_one_part_as_it_is():
    given = items(0, 0, 1, 0)
    (part,) = chunks([100, 200], given)
    assert part.items == given and part.terms == (0, 1)


def test_each_part_has_the_terms_it_uses_and_no_others():
    count = 3 * CHUNK_ITEMS_MAX
    parts = chunks([300] * count, items(*range(count)))
    assert len(parts) >= 3
    assert [place for part in parts for place in part.terms] == list(range(count))
    for part in parts:
        assert [item.terms for item in part.items] == list(range(len(part.items)))
        assert part.bytes <= CHUNK_BYTES_MAX
    assert [item.id for part in parts for item in part.items] == [f"i{number}" for number in range(count)]


def test_terms_shared_by_all_count_in_each_part():
    parts = chunks([CHUNK_BYTES_MAX // 4], items(*[0] * (2 * CHUNK_ITEMS_MAX + 1)))
    assert [len(part.items) for part in parts] == [CHUNK_ITEMS_MAX, CHUNK_ITEMS_MAX, 1]
    assert all(part.terms == (0,) and part.bytes > CHUNK_BYTES_MAX // 4 for part in parts)


@pytest.mark.parametrize("size", [CHUNK_BYTES_MAX, 2 * CHUNK_BYTES_MAX])
def test_an_item_that_is_too_large_is_a_chunk_of_its_own(size):
    parts = chunks([10], items(0, 0, 0, payload=bytes(size)))
    assert [len(part.items) for part in parts] == [1, 1, 1]


def test_terms_are_put_in_the_order_of_their_use():
    (part,) = chunks([10, 10, 10], items(2, 0, 2))
    assert part.terms == (2, 0) and [item.terms for item in part.items] == [0, 1, 0]
