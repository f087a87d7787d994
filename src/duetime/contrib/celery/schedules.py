"""Celery's schedules, as rules of Duetime."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from duetime.contrib.celery.exceptions import refuse


class crontab:
    """A cron rule. Times are in the app's `timezone`."""

    def __init__(
        self,
        minute: Any = "*",
        hour: Any = "*",
        day_of_week: Any = "*",
        day_of_month: Any = "*",
        month_of_year: Any = "*",
        **kwargs: object,
    ) -> None:
        for name, value in kwargs.items():
            if value is not None and name != "app":
                raise refuse(f"crontab({name}=)", "Set `timezone` of the app.")
        fields = map(_field, (minute, hour, day_of_month, month_of_year, day_of_week))
        self.minute, self.hour, self.day_of_month, self.month_of_year, self.day_of_week = fields
        if self.day_of_month != "*" and self.day_of_week != "*":
            raise refuse(
                "crontab with both day_of_week and day_of_month",
                "In Celery both must match, in cron one. Give one, and check the other in the task.",
            )

    @property
    def text(self) -> str:
        """The rule as cron writes it."""
        fields = (self.minute, self.hour, self.day_of_month, self.month_of_year, self.day_of_week)
        return " ".join(fields)

    def __repr__(self) -> str:
        return f"<crontab: {self.text}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, crontab) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


class schedule:
    """Runs at an interval."""

    def __init__(
        self, run_every: float | timedelta, relative: bool = False, nowfun: object = None, app: object = None
    ) -> None:
        if relative:
            raise refuse("schedule(relative=True)", "Use a crontab.")
        self.run_every = run_every if isinstance(run_every, timedelta) else timedelta(seconds=run_every)

    def __repr__(self) -> str:
        return f"<freq: {self.run_every}>"


class solar:
    """Refused: Duetime knows no sunrise."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise refuse("solar", "Use a crontab.")


def rule_of(given: object) -> dict[str, Any]:
    """The rule of Duetime for a schedule."""
    if isinstance(given, crontab):
        return {"cron": given.text}
    every = given.run_every if isinstance(given, schedule) else given
    if isinstance(every, timedelta | int | float) and not isinstance(every, bool):
        return {"every": every}
    raise refuse(f"The schedule {given!r}", "Use a crontab, a timedelta or seconds.")


def _field(value: object) -> str:
    if isinstance(value, str):
        return value.replace(" ", "")
    if isinstance(value, Iterable):
        return ",".join(str(each) for each in sorted(value))
    return str(value)
