"""Terms that were seen before."""

from __future__ import annotations

from duetime.engine.admission.catalog import Catalog
from duetime.limits import TERMS_KEPT, TERMS_KEPT_BYTES_MAX
from duetime.protocol.terms import Callback, Terms


def terms(number: int, body: bytes | None = None) -> Terms:
    return Terms(Callback(f"http://h/{number}", body=body), "callback:h")


def test_equal_terms_are_found_as_one():
    known = Catalog()
    first = known.find(terms(1))
    assert known.find(terms(1)) is first and known.find(first.terms) is first
    assert known.find(terms(2)) is not first


def test_the_catalog_keeps_terms_up_to_its_limit_of_bytes():
    known = Catalog()
    first = known.find(terms(0))
    for number in range(1, TERMS_KEPT):
        known.find(terms(number))
    assert known.find(terms(0)) is first
    known.find(terms(TERMS_KEPT))
    assert known.find(terms(0)) is not first, "the table was made anew"


def test_large_bodies_do_not_pile_up():
    known = Catalog()
    first = known.find(terms(0, bytes(60_000)))
    for number in range(1, TERMS_KEPT_BYTES_MAX // 60_000 + 1):
        known.find(terms(number, bytes(60_000)))
    assert known.find(terms(0, bytes(60_000))) is not first, "the table was emptied"
