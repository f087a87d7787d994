"""What every error has, and whose move it is: the classes that all others are below. Use `duetime.errors`."""

from __future__ import annotations

from typing import ClassVar

from duetime.sentence import one_stop


class DuetimeError(Exception):
    """Something went wrong in Duetime."""

    code: ClassVar[int] = 50001
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    hint: ClassVar[str] = "This is a bug in Duetime: please report it with the text above."

    def __init__(self, message: str = "", *, hint: str | None = None, **details: object) -> None:
        self.message = one_stop(message) or (self.__doc__ or "").split("\n")[0]
        self.details = details
        if hint is not None:
            self.hint = hint  # type: ignore[misc]  # an instance may say it more exactly
        super().__init__(self.message)

    @property
    def advice(self) -> str:
        """The hint, unless the message says it already, as one does that quotes another error."""
        return "" if self.hint.rstrip(".") in self.message else self.hint

    def __str__(self) -> str:
        return f"{self.message} {self.advice}".strip()


class Refused(DuetimeError):
    """The request cannot be taken as it is."""

    code, status, retryable = 42208, 422, False
    hint = "Change the request and send it again; nothing was stored."


class Unavailable(DuetimeError):
    """Duetime cannot do this now."""

    code, status, retryable = 50304, 503, True
    hint = "Try again in a moment."


class Fatal(DuetimeError):
    """The engine stopped itself."""

    code, status, retryable = 50001, 500, False
    hint = "The engine is stopped so that nothing wrong is served. Look at the cause, then start it again."
