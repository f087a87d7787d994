"""The policy of a function where it runs: which errors are retried, and its soft time limit."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable
from concurrent.futures.process import BrokenProcessPool

from msgspec import Struct

from duetime.client.app.control import Context, Reject, RetryAfter, Snooze
from duetime.client.app.times import Delay, delay_ms
from duetime.errors import InvalidField

Decision = Callable[[BaseException, Context], Snooze | Reject | RetryAfter | None]
"""Decides about an error: None for the retry policy, or an exception such as RetryAfter or Reject."""

ErrorClasses = type[BaseException] | Iterable[type[BaseException]]
"""One class of exceptions, or several."""

# Not errors of the function: it decides itself with the first three, the others end the attempt from outside.
_NOT_ITS_OWN = (Snooze, Reject, RetryAfter, BrokenProcessPool, concurrent.futures.CancelledError)


class ProcessError(RuntimeError):
    """An error of a function in another process. The exception stays there; its classes, its name and its
    text are known."""

    def __init__(self, kind: str, text: str, classes: Iterable[str]) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text
        self.classes = frozenset(classes)


class RunPolicy(Struct, frozen=True):
    """What a function declares about its errors and its time."""

    decide: Decision | None = None
    retry_on: tuple[type[BaseException], ...] = ()
    """If given, other exceptions are not retried."""
    give_up_on: tuple[type[BaseException], ...] = ()
    """Not retried, even if they are in `retry_on`."""
    soft_timeout_ms: int = 0

    def gives_up(self, error: BaseException) -> bool:
        """Whether this error of the function makes further attempts pointless."""
        if isinstance(error, _NOT_ITS_OWN):
            return False
        if self.give_up_on and _is_one(error, self.give_up_on):
            return True
        return bool(self.retry_on) and _is_one(error, (Exception,)) and not _is_one(error, self.retry_on)


def run_policy(
    on_error: Decision | None,
    retry_on: ErrorClasses | None,
    give_up_on: ErrorClasses | None,
    soft_timeout: Delay | None,
    timeout_ms: int,
) -> RunPolicy:
    """The checked policy of a function whose attempts have this time limit."""
    soft_ms = 0
    if soft_timeout is not None:
        soft_ms = delay_ms(soft_timeout)
        if not 0 < soft_ms < timeout_ms:
            raise InvalidField(
                f"soft_timeout={soft_timeout!r} must be above 0 and shorter than timeout ({timeout_ms} ms).",
                hint='Write, for example, timeout="30s", soft_timeout="25s".',
            )
    return RunPolicy(on_error, _classes("retry_on", retry_on), _classes("give_up_on", give_up_on), soft_ms)


def class_names(error: BaseException) -> list[str]:
    """The names of the classes of an exception, for another process."""
    return [_name(cls) for cls in type(error).__mro__]


def _is_one(error: BaseException, classes: tuple[type[BaseException], ...]) -> bool:
    if isinstance(error, ProcessError):
        return any(_name(cls) in error.classes for cls in classes)
    return isinstance(error, classes)


def _name(cls: type) -> str:
    # In a new process, the module of the main program has another name.
    module = "__main__" if cls.__module__ == "__mp_main__" else cls.__module__
    return f"{module}.{cls.__qualname__}"


def _classes(option: str, given: ErrorClasses | None) -> tuple[type[BaseException], ...]:
    if given is None:
        return ()
    several = not isinstance(given, type) and isinstance(given, Iterable)
    found: tuple[object, ...] = tuple(given) if several else (given,)  # type: ignore[arg-type]
    hint = f"Write {option}=(ConnectionError, TimeoutError)."
    if not found:
        raise InvalidField(f"{option} is empty.", hint=f"{hint} For no retries, Retry(max_attempts=1).")
    for each in found:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise InvalidField(f"{option} has {each!r}, which is not a class of exceptions.", hint=hint)
    return found  # type: ignore[return-value]
