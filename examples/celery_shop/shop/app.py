"""The Celery app of the shop."""

from __future__ import annotations

from duetime.contrib.celery import Celery
from duetime.contrib.celery.schedules import crontab

app = Celery("shop", include=["shop.orders", "shop.payments", "shop.stock", "shop.mail", "shop.reports"])
app.conf.update(
    broker_url="amqp://guest@localhost//",
    result_backend="rpc://",
    timezone="Europe/Paris",
    task_routes={"shop.mail.*": {"queue": "mail"}, "shop.reports.*": {"queue": "reports"}},
    task_track_started=True,
    result_expires=86_400,
    beat_schedule={
        "nightly-report": {
            "task": "shop.reports.nightly",
            "schedule": crontab(hour=3, minute=30),
            "options": {"expires": 3_600},
        },
        "reorder": {"task": "shop.stock.reorder", "schedule": 1_800.0, "args": (5,)},
    },
)
