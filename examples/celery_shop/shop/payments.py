"""Payments: the bank may be down, or decline."""

from __future__ import annotations

from typing import Any

from duetime.contrib.celery.utils.log import get_task_logger
from shop import ledger
from shop.app import app

logger = get_task_logger(__name__)


class Declined(Exception):
    """The bank refuses. A retry would not help."""


@app.task(
    bind=True,
    autoretry_for=(ConnectionError,),
    retry_backoff=60,
    retry_backoff_max=3_600,
    retry_jitter=False,
    retry_kwargs={"max_retries": 6},
    acks_late=True,
    throws=(Declined,),
)
def charge(self: Any, order: dict[str, Any]) -> dict[str, Any]:
    """Charge the card of an order."""
    if order["card"] == "stolen":
        raise Declined(f"the card of {order['number']} is stolen")
    ledger.call("bank", order["number"])
    ledger.write(order["number"], "charged", str(order["cents"]))
    logger.info("charged %s, retry %d", order["number"], self.request.retries)
    return {**order, "paid": True}


@app.task(ignore_result=True)
def refund(number: str) -> None:
    """Give the money back."""
    ledger.write(number, "refunded")
