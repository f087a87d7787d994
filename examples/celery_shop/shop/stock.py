"""The stock: goods are reserved before they are paid."""

from __future__ import annotations

from typing import Any

from duetime.contrib.celery import shared_task
from shop import ledger


@shared_task(acks_late=True)
def reserve(order: dict[str, Any]) -> dict[str, Any]:
    """Put the goods of an order aside."""
    ledger.write(order["number"], "reserved", order["goods"])
    return order


@shared_task
def release(number: str) -> None:
    """Put the goods of an order back."""
    ledger.write(number, "released")


@shared_task(rate_limit="100/m")
def reorder(least: int) -> int:
    """Order what is missing."""
    ledger.call("supplier", str(least))
    return least
