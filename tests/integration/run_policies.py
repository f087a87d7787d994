"""An app whose functions run in other processes, with policies for their errors and a soft time limit."""

from __future__ import annotations

import os
import time
from pathlib import Path

from duetime import App, Retry, SoftTimeout

app = App(":memory:")
QUICK = Retry(max_attempts=3, initial_delay="1ms", jitter=False)


class OutOfPaper(ConnectionError):
    """A subclass of an error that is retried."""


ERRORS = {each.__name__: each for each in (OutOfPaper, ConnectionError, ValueError, KeyError)}


@app.task(cpu_bound=True, retry=QUICK, retry_on=(ConnectionError, KeyError), give_up_on=KeyError)
def fails(kind: str) -> None:
    raise ERRORS[kind]("no")


@app.task(cpu_bound=True, retry=Retry(max_attempts=1), soft_timeout="200ms")
def naps(cleaned: str) -> None:
    try:
        time.sleep(60)  # tidy: a blocking call, which the signal interrupts
    except SoftTimeout:
        Path(cleaned).touch()
        raise


@app.task(cpu_bound=True, soft_timeout="200ms")
def spins() -> str:
    try:
        while True:
            pass
    except SoftTimeout:
        return "stopped in time"


@app.task(cpu_bound=True, soft_timeout="20s")
def quick(number: int) -> int:
    return number


@app.task(cpu_bound=True)
def pid() -> int:
    return os.getpid()


def unbound() -> None:
    """Registered under another name: a process finds the plain function."""
    raise ERRORS["ValueError"]("no")


unbound_task = app.task(cpu_bound=True, retry=QUICK, give_up_on=(ValueError,), name="unbound")(unbound)
