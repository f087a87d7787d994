"""The flow of an order."""

from __future__ import annotations

from typing import Any

from duetime.contrib.celery import chain, chord, group
from shop import ledger, mail, payments, stock
from shop.app import app


@app.task
def check(order: dict[str, Any]) -> dict[str, Any]:
    """The first step."""
    ledger.write(order["number"], "placed")
    return order


@app.task
def label(order: dict[str, Any], carrier: str) -> str:
    """Print the label of a parcel."""
    ledger.write(order["number"], f"label:{carrier}")
    return carrier


@app.task
def close(done: list[str], number: str) -> dict[str, Any]:
    """The last step, with the results of shipping and mail."""
    ledger.write(number, "closed", ", ".join(done))
    return {"number": number, "done": done}


@app.task
def failed(request: Any, error: Exception, traceback: str | None, number: str) -> None:
    """A step failed: undo what was done."""
    ledger.write(number, "failed", type(error).__name__)
    undo = [stock.release.si(number), mail.apologize.si(number, str(error))]
    if "charged" in ledger.steps(number):
        undo.append(payments.refund.si(number))
    group(undo).delay()


@app.task
def ask_for_review(number: str) -> None:
    """Some days later."""
    ledger.write(number, "review")


def place(number: str, goods: str, cents: int, card: str = "good", customer: str = "ada") -> Any:
    """Place an order. Returns the result of its last step."""
    order = {"number": number, "goods": goods, "cents": cents, "card": card, "customer": customer}
    last = chord(
        [label.s("post"), mail.send.s("receipt"), mail.send.s("invoice")],
        close.s(number).set(link=ask_for_review.si(number).set(countdown=3 * 86_400)),
    )
    flow = chain(check.s(order), stock.reserve.s(), payments.charge.s(), last)
    return flow.apply_async(link_error=failed.s(number))
