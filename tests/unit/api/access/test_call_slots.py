"""Places for calls: what one token may have of them."""

from __future__ import annotations

import pytest

from duetime.api.access.call_slots import Places
from duetime.errors import Busy


def test_one_token_leaves_room_for_others():
    places = Places(4, "streams")
    for _ in range(3):
        places.check("a")
        places.begin("a")
    with pytest.raises(Busy, match="3 streams of this token"):
        places.check("a")
    places.check("b")
    places.begin("b")
    with pytest.raises(Busy, match="4 streams are running"):
        places.check("c")
    places.end("a")
    assert places.has_room("a") and places.has_room("c")


def test_without_tokens_all_slots_are_shared():
    places = Places(4, "streams")
    for _ in range(4):
        places.check("")
        places.begin("")
    assert not places.has_room("")
    places.end("")
    assert places.has_room("") and places.under_way == 3


def test_a_slot_is_free_again_after_an_error():
    places = Places(1, "streams", wait_ms=7)
    with pytest.raises(ValueError, match="in it"), places.one("a"):
        with pytest.raises(Busy) as busy, places.one("b"):
            pass
        assert busy.value.details["waitMs"] == 7
        raise ValueError("in it")
    assert places.under_way == 0 and places.has_room("a")
