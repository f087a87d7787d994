"""The app whose functions the workers of these tests run. They tell the test what they do, over a socket."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import time

from duetime import App, Failure, Reject, Retry, Snooze, SoftTimeout, Status, current, progress

app = App("http://127.0.0.1:1")
SOON = Retry(max_attempts=50, backoff="fixed", initial_delay="50ms", jitter=False)


_logger = logging.getLogger("functions")


def tell(to: str, **words: object) -> None:
    """One datagram to the test: who runs which delivery, and what it has to say."""
    at = current()
    told = {"id": at.intent_id, "delivery": at.delivery, "attempt": at.attempt, "pid": os.getpid(), **words}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        out.sendto(json.dumps(told).encode(), to)


def _facts() -> list[int]:
    at = current()
    return [at.delivery, at.attempt, at.max_attempts]


@app.task(name="add")
async def add(a: int, b: int) -> list[int]:
    await asyncio.sleep(0)  # tidy: a function that waits
    return [a + b, *_facts()]


@app.task(name="plain")
def plain(a: int, b: int) -> list[int]:
    return [a + b, *_facts()]


@app.task(name="heavy", cpu_bound=True, queue="heavy")
def heavy(a: int, b: int) -> list[int]:
    return [a + b, *_facts()]


@app.task(name="heavy_pid", cpu_bound=True, queue="heavy", retry=SOON)
def heavy_pid(mib: int) -> list[int]:
    _kept.append(b"x" * (mib << 20))
    return [os.getpid(), current().attempt]


_kept: list[bytes] = []


@app.task(name="length", cpu_bound=True, queue="heavy")
def length(items: list[int]) -> int:
    return len(items)


@app.task(name="tagged", tags={"who": "{who}"}, key="tagged:{who}")
async def tagged(who: str) -> dict[str, str]:
    return current().tags


@app.task(name="told_of", retry=SOON)
async def told_of(failure: Failure) -> str:
    return f"{failure.status} {failure.message}"


@app.task(name="chained")
async def chained(a: int) -> str:
    """Schedules another where it came from."""
    return (await add.schedule(a, 1)).id


@app.task(name="once", retry=SOON)
async def told(to: str) -> None:
    tell(to)


@app.task(name="moody", retry=SOON)
async def moody(mood: str) -> str:
    if mood == "reject":
        raise Reject("it is wrong")
    if mood == "snooze" and current().delivery == 1:
        raise Snooze("50ms")
    if mood == "fail" and current().attempt == 1:
        raise ValueError("not this time")
    return f"{mood} {current().delivery} {current().attempt}"


@app.task(name="held", retry=SOON)
async def held(to: str, go: str) -> int:
    """Runs until the file `go` is there."""
    tell(to, event="began")
    try:
        while not os.path.exists(go):
            await asyncio.sleep(0.01)  # tidy: waits for the test's word
    except asyncio.CancelledError:
        tell(to, event="cancelled")
        raise
    tell(to, event="ended")
    return current().delivery


@app.task(name="thread_held", retry=SOON)
def thread_held(to: str, go: str) -> int:
    tell(to, event="began")
    while not os.path.exists(go):
        time.sleep(0.01)  # tidy: waits for the test's word
    tell(to, event="ended")
    return current().delivery


@app.task(name="spins", cpu_bound=True, queue="heavy", retry=Retry(max_attempts=1))
def spins(to: str) -> None:
    tell(to, event="began")
    while True:
        pass


def _slow_until_told() -> str:
    try:
        while True:
            time.sleep(0.01)  # tidy: runs until its soft limit
    except SoftTimeout:
        return f"stopped in attempt {current().attempt}"


@app.task(name="soft_thread", soft_timeout="100ms")
def soft_thread() -> str:
    return _slow_until_told()


@app.task(name="soft_process", cpu_bound=True, queue="heavy", soft_timeout="100ms")
def soft_process() -> str:
    return _slow_until_told()


@app.task(name="soft_coroutine", soft_timeout="100ms")
async def soft_coroutine() -> str:
    try:
        await asyncio.Event().wait()
    except SoftTimeout:
        return f"stopped in attempt {current().attempt}"
    return ""


class Unplugged(ConnectionError): ...


def _picky(wrong: bool) -> int:
    if current().attempt < 3:
        raise ValueError("wrong") if wrong else Unplugged("no plug")
    return current().attempt


@app.task(name="picky", retry=SOON, retry_on=(ConnectionError,))
def picky(wrong: bool) -> int:
    return _picky(wrong)


@app.task(name="picky_process", cpu_bound=True, queue="heavy", retry=SOON, retry_on=(ConnectionError,))
def picky_process(wrong: bool) -> int:
    return _picky(wrong)


@app.task(name="blocks", retry=SOON, lease="1s", timeout="20s")
async def blocks(to: str, seconds: float) -> int:
    """What nobody should do: the whole loop stands still."""
    tell(to, event="began")
    time.sleep(seconds)  # tidy: it blocks the loop
    return current().delivery


def _first_and_alone(to: str, place: str) -> bool:
    """Whether this is the first run. A second one tells if the process of the first still lives."""
    try:
        with open(place, encoding="ascii") as file:
            first = file.read()
    except FileNotFoundError:
        with open(place, "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        tell(to, event="began")
        return True
    try:
        with open(f"/proc/{first}/stat", encoding="ascii", errors="replace") as file:
            alive = file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        alive = False
    tell(to, event="again", alive=alive)
    return False


@app.task(name="blocks_first", retry=Retry(max_attempts=1), lease="1h")
async def blocks_first(to: str, place: str) -> None:
    """The first run blocks the loop for ever."""
    if _first_and_alone(to, place):
        while True:
            time.sleep(1)  # tidy: it blocks the loop


@app.task(name="thread_first", retry=Retry(max_attempts=1), lease="1h")
def thread_first(to: str, place: str) -> None:
    """The first run never ends, in a thread."""
    if _first_and_alone(to, place):
        while True:
            time.sleep(1)  # tidy: it does not end


@app.task(name="work", retry=SOON)
async def work(to: str, seconds: float) -> int:
    tell(to)
    await asyncio.sleep(seconds)  # tidy: work that takes a while
    return current().delivery


@app.task(name="counted", retry=SOON)
async def counted(number: int, to: str, every: int) -> int:
    """One of many; some of them say so."""
    if number % every == 0:
        tell(to, number=number)
    return number


@app.task(name="summed", retry=SOON)
async def summed(to: str) -> int:
    """After all of them: what they have come to."""
    parents = await app.parents()
    acked = [parent.result for parent in parents if parent.status is Status.ACKED]
    tell(to, acked=len(acked), sum=sum(acked))
    return len(acked)


@app.task(name="other", queue="other")
async def other(to: str, seconds: float) -> None:
    tell(to, event="began")
    await asyncio.sleep(seconds)  # tidy: work that takes a while
    tell(to, event="ended")


async def _until(go: str) -> None:
    while not os.path.exists(go):
        await asyncio.sleep(0.01)  # tidy: waits for the test's word


@app.task(name="far", retry=SOON)
async def far(to: str, go: str, times: int = 1) -> None:
    """Says how far it is, as often as told."""
    for number in range(1, times + 1):
        progress(number, times, f"step {number}")
    tell(to, event="said")
    await _until(go)


@app.task(name="thread_far", retry=SOON)
def thread_far(to: str, go: str) -> None:
    progress(0.5, note="half")
    tell(to, event="said")
    while not os.path.exists(go):
        time.sleep(0.01)  # tidy: waits for the test's word


@app.task(name="process_far", cpu_bound=True, queue="heavy", retry=SOON)
def process_far(to: str, go: str) -> None:
    progress(1, 3)
    progress(2, 3, "in a process")
    tell(to, event="said")
    while not os.path.exists(go):
        time.sleep(0.01)  # tidy: waits for the test's word


@app.task(name="talks", retry=SOON)
async def talks(word: str) -> None:
    _logger.info("first %s", word)
    await asyncio.sleep(0)  # tidy: others run in between
    _logger.warning("then %s", word)
    if word == "fail" and current().attempt == 1:
        raise ValueError("not this time")


@app.task(name="thread_talks", retry=SOON)
def thread_talks(word: str) -> None:
    _logger.info("in a thread: %s", word)


@app.task(name="process_talks", cpu_bound=True, queue="heavy", retry=SOON)
def process_talks(word: str) -> None:
    _logger.warning("in a process: %s", word)


class Account:
    """Tells what is done to which account, and may be held."""

    def __init__(self, id: str) -> None:
        self.id = id

    async def deposit(self, to: str, number: int, go: str = "") -> int:
        tell(to, event="began", account=self.id, number=number)
        if go:
            await _until(go)
        tell(to, event="ended", account=self.id, number=number)
        return number


accounts = app.entity(Account, on_interrupt="retry", retry=SOON)


@app.task(name="poison", retry=Retry(max_attempts=3, backoff="fixed", initial_delay="50ms", jitter=False))
async def poison(to: str) -> None:
    """Kills whoever runs it."""
    tell(to)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(name="breaks", retry=Retry(max_attempts=1))
async def breaks() -> None:
    raise ConnectionError("not ours")
