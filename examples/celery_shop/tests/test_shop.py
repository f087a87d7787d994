"""The tests of the shop. They use only Celery's interface, and the clock."""

from __future__ import annotations

import pytest
from shop import ledger, mail, payments, stock
from shop.orders import place
from shop.payments import Declined

from duetime.contrib.celery.exceptions import ChordError


def test_an_order_goes_through_all_steps(app, clock):
    result = place("a1", "book", 1_900)
    assert result.get(timeout=10) == {
        "number": "a1",
        "done": ["post", "receipt to ada", "invoice to ada"],
    }
    assert set(ledger.steps("a1")) == {
        "placed", "reserved", "charged", "label:post", "mail:receipt", "mail:invoice", "closed",
    }  # fmt: skip


def test_a_review_is_asked_for_three_days_after_the_end(app, clock):
    place("a2", "book", 1_900).get(timeout=10)
    clock.advance("71h")
    assert "review" not in ledger.steps("a2")
    clock.advance("1h")
    assert "review" in ledger.steps("a2")


def test_a_bank_that_is_down_is_asked_again_with_back_off(app, clock, bank):
    bank(3)
    result = place("a3", "book", 1_900)
    clock.drain()
    assert (ledger.calls("bank"), result.state) == (1, "PENDING")
    clock.advance("60s")
    assert ledger.calls("bank") == 2
    clock.advance("119s")
    assert ledger.calls("bank") == 2
    clock.advance("1s")
    assert ledger.calls("bank") == 3
    clock.advance("240s")
    assert ledger.calls("bank") == 4
    assert result.get(timeout=10)["number"] == "a3"


def test_a_bank_that_stays_down_undoes_the_order(app, clock, bank):
    bank(100)
    result = place("a4", "book", 1_900)
    clock.advance("6h")
    assert ledger.calls("bank") == 7
    with pytest.raises(ConnectionError, match="bank does not answer"):
        result.parent.parent.get(timeout=10)
    assert ledger.steps("a4")["failed"] == "ConnectionError"
    assert {"released", "mail:sorry"} <= set(ledger.steps("a4"))


def test_a_declined_card_is_not_retried_and_undoes_the_order_once(app, clock):
    result = place("a5", "book", 1_900, card="stolen")
    clock.drain()
    with pytest.raises(Declined, match="stolen"):
        result.parent.parent.get(timeout=10)
    with pytest.raises(ChordError, match="Declined"):
        result.get(timeout=10)
    assert ledger.steps("a5") == {
        "placed": "",
        "reserved": "book",
        "failed": "Declined",
        "released": "",
        "mail:sorry": "the card of a5 is stolen",
    }
    assert ledger.calls("bank") == 0


def test_a_failure_after_the_payment_gives_the_money_back(app, clock):
    ledger.break_down("mail", 100)
    result = place("a6", "book", 1_900)
    clock.advance("10m")
    assert result.state == "FAILURE"
    with pytest.raises(ChordError):
        result.get(timeout=10)
    assert "refunded" in ledger.steps("a6")


def test_mail_is_retried_after_half_a_minute(app, clock):
    ledger.break_down("mail", 2)
    result = mail.send.delay({"number": "a7", "customer": "bob"}, "news")
    clock.drain()
    assert result.state == "RETRY"
    clock.advance("59s")
    assert not result.ready()
    clock.advance("1s")
    assert result.get(timeout=10) == "news to bob"


def test_the_report_runs_every_night_in_the_zone_of_the_shop(app, clock):
    place("a8", "book", 1_900).get(timeout=10)
    clock.advance("2h29m")  # 1 January 2030, 02:29 UTC: 03:29 in Paris
    assert ledger.count("report") == 0
    clock.advance("1m")
    assert ledger.count("report") == 1
    clock.advance("7d")
    assert ledger.count("report") == 8


def test_stock_is_ordered_every_half_hour(app, clock):
    clock.advance("2h")
    assert ledger.calls("supplier") == 4


def test_tasks_can_be_called_and_revoked(app, clock):
    assert stock.reserve({"number": "a9", "goods": "pen"})["goods"] == "pen"
    later = payments.refund.apply_async(("a9",), countdown=3_600)
    later.revoke()
    clock.advance("2h")
    assert later.state == "REVOKED"
    assert "refunded" not in ledger.steps("a9")
