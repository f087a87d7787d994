"""Durations as text."""

from __future__ import annotations

import pytest

from duetime.duration_text import exact, span


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-5, "0 ms"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (4_250, "4.2 s"),
        (9_999, "9.9 s"),
        (10_500, "10 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (250_000, "4 min 10 s"),
        (3_600_000, "1 h"),
        (11_100_999, "3 h 5 min"),
        (86_400_000, "1 d"),
        (187_200_000, "2 d 4 h"),
        (10**13, "115740 d 17 h"),
    ],
)
def test_in_words(ms, text):
    assert span(ms) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (300_000, "5 min"),
        (12_500, "12 s 500 ms"),
        (5_400_000, "1 h 30 min"),
        (90_061_001, "1 d 1 h 1 min 1 s 1 ms"),
    ],
)
def test_exact(ms, text):
    assert exact(ms) == text
