"""Mail to customers."""

from __future__ import annotations

from typing import Any

from duetime.contrib.celery import shared_task
from shop import ledger


@shared_task(bind=True, max_retries=3, default_retry_delay=30)
def send(self: Any, order: dict[str, Any], template: str) -> str:
    """Send one mail. The mail server may be down."""
    try:
        ledger.call("mail", order["number"])
    except ConnectionError as error:
        raise self.retry(exc=error) from error
    ledger.write(order["number"], f"mail:{template}")
    return f"{template} to {order['customer']}"


@shared_task(ignore_result=True)
def apologize(number: str, reason: str) -> None:
    """Tell a customer that there is no parcel."""
    ledger.write(number, "mail:sorry", reason)
