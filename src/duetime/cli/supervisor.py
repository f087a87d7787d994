"""Supervises worker processes: restarts dead ones, forwards signals, reloads after changes."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

from duetime.errors import BadConfig
from duetime.limits import WORKER_RESTART_S, WORKER_RESTART_S_MAX, WORKER_YOUNG_S

_SKIPPED = ("__pycache__", "node_modules")
_logger = logging.getLogger("duetime.worker")

# `awatch` of watchfiles: an iterator over sets of changed files.
Awatch = Callable[..., AsyncGenerator[set[tuple[Any, str]], None]]


def supervise(command: Callable[[int], list[str]], processes: int, *, reload: bool) -> int:
    """Run this many processes until a signal stops them; each has its number. Returns the exit code."""
    return asyncio.run(Supervisor(command, processes, reload=reload).run())


class Supervisor:
    """The processes of one worker."""

    def __init__(self, command: Callable[[int], list[str]], processes: int, *, reload: bool) -> None:
        self._command = command
        self._count = processes
        self._awatch = _load_awatch() if reload else None
        self._children: set[asyncio.subprocess.Process] = set()
        self._code = 0
        self._changed = asyncio.Event()

    async def run(self) -> int:
        self._stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signal)
        watch = loop.create_task(self._watch()) if self._awatch is not None else None
        await asyncio.gather(*(self._keep(number) for number in range(self._count)))
        if watch is not None:
            watch.cancel()
        return self._code

    def _signal(self) -> None:
        self._stopping.set()
        self._changed.set()
        for child in self._children:
            if child.returncode is None:
                child.send_signal(signal.SIGTERM)

    async def _keep(self, number: int) -> None:
        """Keep one process running until the supervisor is stopped."""
        loop, wait_s = asyncio.get_running_loop(), WORKER_RESTART_S
        while not self._stopping.is_set():
            began_s = loop.time()
            # In its own process group: signals of the terminal reach it only from here, and once.
            child = await asyncio.create_subprocess_exec(
                *self._command(number), stdin=asyncio.subprocess.PIPE, start_new_session=True
            )
            self._children.add(child)
            if self._stopping.is_set():
                child.send_signal(signal.SIGTERM)
            code = await child.wait()
            self._children.discard(child)
            if self._stopping.is_set():
                self._code = self._code or (1 if code else 0)
                return
            if self._awatch is not None:
                if code:
                    _logger.warning("The worker ended with %d; it is restarted after a change.", code)
                    await self._changed.wait()
                self._changed.clear()
                continue
            wait_s = (
                WORKER_RESTART_S
                if loop.time() - began_s > WORKER_YOUNG_S
                else min(2 * wait_s, WORKER_RESTART_S_MAX)
            )
            _logger.error("Worker process %d ended with %d; restarted in %.1f s.", number, code, wait_s)
            try:
                async with asyncio.timeout(wait_s):
                    await self._stopping.wait()
            except TimeoutError:
                continue

    async def _watch(self) -> None:
        """Replace every process when a source file below the current folder changes."""
        assert self._awatch is not None
        try:
            async for changes in self._awatch(
                Path.cwd(), watch_filter=is_source, ignore_permission_denied=True
            ):
                _logger.info("%s changed: restarting.", min(path for _, path in changes))
                self._changed.set()
                for child in self._children:
                    if child.returncode is None:
                        child.send_signal(signal.SIGTERM)
        except OSError as error:
            _logger.error("Source files are not watched any more: %s.", error)


def is_source(change: object, path: str) -> bool:
    """Whether it is a Python file of the project: not hidden, not in a cache or a virtual environment."""
    root = Path.cwd()
    parts = Path(path).relative_to(root).parts
    if not path.endswith(".py") or any(name.startswith(".") or name in _SKIPPED for name in parts):
        return False
    return not any(root.joinpath(*parts[:depth], "pyvenv.cfg").exists() for depth in range(1, len(parts)))


def _load_awatch() -> Awatch:
    try:
        from watchfiles import awatch
    except ImportError:
        raise BadConfig(
            "--reload needs watchfiles, which is not installed.",
            hint="Install it with `pip install 'duetime[reload]'`.",
        ) from None
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # it logs every change
    return awatch
