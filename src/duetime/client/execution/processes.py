"""Processes that run functions. A single process can be killed, to stop a function that does not end.

The executors of the standard library do not show which of their processes runs a call, and fail as a whole if
one process dies. Here each running call has its own process. Only bytes are exchanged.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from duetime.limits import CHILD_EXIT_S, PROGRESS_MS
from duetime.timefmt import plural, size

# A new interpreter, because a fork would copy locks that threads of this process hold.
_SPAWN = get_context("spawn")
# Messages of a process: its result, or a report while it runs.
_ANSWER, _WORD = b"a", b"w"
# Inside a process: the pipe to the parent, and the lock for it.
_pipe: Connection | None = None
_sending = threading.Lock()
_logger = logging.getLogger("duetime")


class _Child:
    """One process, and the pipe to it."""

    def __init__(self) -> None:
        self.pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(theirs,), name="duetime-process")
        self._process.start()
        theirs.close()
        self.calls = 0
        """The number of its calls."""

    def ask(self, call: Callable[[bytes], bytes], body: bytes, hear: Callable[[bytes], object]) -> bytes:
        """Its result. Reports before the result go to `hear`."""
        self.calls += 1
        self.pipe.send((call, body))
        while True:
            said: bytes = self.pipe.recv_bytes()
            if said[:1] == _ANSWER:
                return said[1:]
            hear(said[1:])

    def kill(self) -> None:
        self._process.kill()

    def leave(self) -> None:
        """Close the pipe. The process then ends by itself."""
        self.pipe.close()

    def retire(self) -> None:
        """Let an idle process end by itself, with its exit handlers. If it does not, it is killed."""
        self.leave()
        threading.Thread(target=self._reap, name="duetime-retired", daemon=True).start()

    def _reap(self) -> None:
        self._process.join(CHILD_EXIT_S)
        self.kill()
        self._process.join()

    def memory_bytes(self) -> int:
        """Its resident memory; 0 if the process is gone or the system does not provide it."""
        try:
            pages = Path(f"/proc/{self._process.pid}/statm").read_text("ascii").split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def end(self) -> None:
        self.kill()
        self._process.join()
        self.pipe.close()


def _serve(pipe: Connection) -> None:
    """The main function of a process: runs calls one by one until the pipe is closed."""
    global _pipe
    _pipe = pipe
    with contextlib.suppress(EOFError, KeyboardInterrupt, OSError):
        while True:
            call, body = pipe.recv()
            answer = call(body)
            with _sending:
                pipe.send_bytes(_ANSWER + answer)


def tell(word: bytes) -> None:
    """Send a report from inside a process, while its call runs."""
    with _sending, contextlib.suppress(OSError):
        if _pipe is not None:
            _pipe.send_bytes(_WORD + word)


class Ticker:
    """Calls a function immediately after a report, but at most once per interval."""

    def __init__(self, do: Callable[[], object]) -> None:
        self._do = do
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._more = self._stopped = False

    def news(self) -> None:
        with self._lock:
            if self._timer is not None or self._stopped:
                self._more = True
                return
            self._arm()
        self._do()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._timer is not None:
                self._timer.cancel()

    def _arm(self) -> None:
        self._timer = threading.Timer(PROGRESS_MS / 1000, self._again)
        self._timer.daemon = True
        self._timer.start()

    def _again(self) -> None:
        with self._lock:
            more, self._more, self._timer = self._more, False, None
            if self._stopped or not more:
                return
            self._arm()
        self._do()


class _Ticket:
    """One call, and the process that runs it."""

    __slots__ = ("child", "killed")

    def __init__(self) -> None:
        self.child: _Child | None = None
        self.killed = False


class Processes(Executor):
    """Runs as many concurrent calls as there are workers. A call takes bytes and returns bytes.

    A process is replaced between two calls if it has had `calls_max` calls or has more resident memory than
    `memory_bytes_max`; 0: no limit."""

    def __init__(self, workers: int, calls_max: int = 0, memory_bytes_max: int = 0) -> None:
        self._calls_max = calls_max
        self._memory_bytes_max = memory_bytes_max
        self._threads = ThreadPoolExecutor(workers, "duetime-process")
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._tickets: dict[Future[Any], _Ticket] = {}
        self._closed = False

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        ticket = _Ticket()
        future = self._threads.submit(self._run, ticket, call, *args)
        with self._lock:
            self._tickets[future] = ticket
        future.add_done_callback(self._forget)
        return future

    def kill(self, future: Future[Any]) -> None:
        """Kill the process that runs this call; the others continue."""
        with self._lock:
            ticket = self._tickets.get(future)
            if ticket is None:
                return
            ticket.killed = True
            child = ticket.child
        if child is not None:
            child.kill()

    def kill_all(self) -> None:
        """Kill all processes."""
        with self._lock:
            self._closed = True
            futures, idle, self._idle = list(self._tickets), self._idle, []
        for future in futures:
            self.kill(future)
        for child in idle:
            child.leave()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self.kill_all()
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        self.kill_all()

    def _forget(self, future: Future[Any]) -> None:
        with self._lock:
            self._tickets.pop(future, None)

    def _run(
        self,
        ticket: _Ticket,
        call: Callable[[bytes], bytes],
        body: bytes,
        hear: Callable[[bytes], object] = lambda word: None,
    ) -> bytes:
        with self._lock:
            child = self._idle.pop() if self._idle else None
        child = child or _Child()
        with self._lock:
            ticket.child = child
            killed = ticket.killed or self._closed
        try:
            if killed:
                raise EOFError
            answer = child.ask(call, body, hear)
        except (EOFError, OSError):
            child.end()
            raise BrokenProcessPool("the process that ran it died") from None
        except BaseException:
            child.end()
            raise
        spent = self._is_spent(child)
        with self._lock:
            ticket.child = None
            usable = not self._closed and not ticket.killed
            if usable and not spent:
                self._idle.append(child)
                return answer
        if usable:
            child.retire()
        else:
            child.end()
        return answer

    def _is_spent(self, child: _Child) -> bool:
        """Whether an idle process has reached a limit."""
        if 0 < self._calls_max <= child.calls:
            return True
        if not self._memory_bytes_max:
            return False
        memory_bytes = child.memory_bytes()
        if memory_bytes <= self._memory_bytes_max:
            return False
        _logger.info(
            "A process with %s is replaced, after %s.", size(memory_bytes), plural(child.calls, "call")
        )
        return True
