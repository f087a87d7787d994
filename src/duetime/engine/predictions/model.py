"""The connection to the model's process: asked in batches, never awaited for longer than a few milliseconds.

It is a separate process, so that training takes nothing from the engine's loop and its crash ends nothing
else. Every question gets an answer: the model's, or none in time, and then the sketch decides.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import msgspec

from duetime.engine.predictions.features import Row
from duetime.engine.predictions.messages import (
    Predicted,
    PredictionRequest,
    Trained,
    TrainingFailed,
    read_message,
    write,
)
from duetime.limits import (
    PREDICT_ANSWER_MS,
    PREDICT_LATE_MAX,
    PREDICT_LINE_BYTES_MAX,
    PREDICT_REST_MS,
    PREDICT_RESTART_MS,
    PREDICT_RESTART_MS_MAX,
    PREDICT_ROWS_PER_MS,
    PREDICT_SLICE,
    PREDICT_STOP_S,
)

_logger = logging.getLogger("duetime")

Told = Callable[[int], None]
"""Called once with the predicted duration; 0: unknown, or not in time."""

# The state of the model. Only IN_USE predicts; in all others the sketch does.
OFF = "OFF"
MISSING = "MISSING"
LEARNING = "LEARNING"
IN_USE = "IN_USE"
WORSE = "WORSE"
SLOW = "SLOW"
FAILED = "FAILED"
DOWN = "DOWN"
STATES = (OFF, MISSING, LEARNING, IN_USE, WORSE, SLOW, FAILED, DOWN)


class Model:
    """The process, if any, and its state."""

    def __init__(self) -> None:
        self.trained: Trained | None = None
        self.failure = ""
        self.starts = 0
        self.late = 0
        """Answers that came too late, since the start."""
        self._state = OFF
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._ending: list[asyncio.Task[None]] = []
        self._asked: list[tuple[Row, Told]] = []
        self._out: dict[int, list[Told]] = {}
        self._number = 0
        self._late = 0
        self._rests_until_s = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None

    # Lifecycle.

    def want(self, path: Path | None) -> None:
        """Some lane is ordered by predictions: start the process, if one is available."""
        if self._task is not None or path is None:
            return
        if find_spec("sklearn") is None:
            self._state = MISSING
            return
        self._loop = asyncio.get_running_loop()
        self._state = LEARNING
        self._task = self._loop.create_task(self._live(path))

    def leave(self) -> None:
        """No lane needs it any more: stop the process."""
        if self._task is not None:
            self._task.cancel()
            self._ending.append(self._task)
        self._task, self._state, self.trained = None, OFF, None

    async def gone(self) -> None:
        """Wait until no process is left."""
        await asyncio.gather(*self._ending, return_exceptions=True)
        self._ending.clear()

    @property
    def pid(self) -> int | None:
        """The process id, while there is a process."""
        process = self._process
        return None if process is None or process.returncode is not None else process.pid

    async def _live(self, path: Path) -> None:
        """Start the process, read its answers, and restart it with back-off when it dies."""
        wait_ms = PREDICT_RESTART_MS
        while True:
            try:
                await self._hear(path)
            except (OSError, ValueError, msgspec.MsgspecError) as error:
                self.failure = str(error)
            finally:
                await self._ended()
            self._state, self.trained = DOWN, None
            _logger.warning("The duration model is down; it restarts in %g s.", wait_ms / 1000)
            await asyncio.sleep(wait_ms / 1000)
            wait_ms = min(2 * wait_ms, PREDICT_RESTART_MS_MAX)
            self._state = LEARNING

    async def _hear(self, path: Path) -> None:
        self.starts += 1
        pipe = asyncio.subprocess.PIPE
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "duetime.engine.predictions.trainer", str(path),
            stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, limit=PREDICT_LINE_BYTES_MAX,
        )  # fmt: skip
        assert process.stdout is not None
        while line := await process.stdout.readline():
            self._hears(line)

    async def _ended(self) -> None:
        """The process is gone, or is to be stopped."""
        process, self._process = self._process, None
        self._give_up()
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        if process.returncode is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PREDICT_STOP_S):
                    await process.wait()
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _hears(self, line: bytes) -> None:
        message = read_message(line)
        if isinstance(message, Predicted):
            told = self._out.pop(message.number, None)
            if told is not None:
                self._late = 0
                for each, expected_ms in zip(told, message.expected_ms, strict=True):
                    each(expected_ms)
        elif isinstance(message, Trained):
            self.trained, self.failure = message, ""
            self._state = IN_USE if message.score.model < message.score.sketch else WORSE
        else:
            assert isinstance(message, TrainingFailed)
            self.failure = message.why
            self._state = FAILED if self.trained is None else self._state

    # Questions.

    @property
    def state(self) -> str:
        """The state of the model."""
        if self._state is IN_USE and self._loop is not None and self._loop.time() < self._rests_until_s:
            return SLOW
        return self._state

    def ask(self, row: Row, told: Told) -> None:
        """PredictionRequest the model if it is in use. Questions of one turn are sent together."""
        assert self._loop is not None
        if not self._asked:
            self._loop.call_soon(self._send)
        self._asked.append((row, told))

    def _send(self) -> None:
        asked, self._asked = self._asked, []
        process, loop = self._process, self._loop
        if process is None or process.stdin is None or process.stdin.is_closing() or loop is None:
            for _, told in asked:
                told(0)
            return
        for start in range(0, len(asked), PREDICT_SLICE):
            part = asked[start : start + PREDICT_SLICE]
            self._number += 1
            self._out[self._number] = [told for _, told in part]
            process.stdin.write(write(PredictionRequest(self._number, [row for row, _ in part])) + b"\n")
            loop.call_later(self._time_ms() / 1000, self._too_late, self._number)

    def _time_ms(self) -> float:
        """The time limit of the newest question: it is answered after all open ones."""
        rows = sum(len(told) for told in self._out.values())
        return PREDICT_ANSWER_MS + rows / PREDICT_ROWS_PER_MS

    def _too_late(self, number: int) -> None:
        told = self._out.pop(number, None)
        if told is None:
            return
        self.late += 1
        self._late += 1
        if self._late >= PREDICT_LATE_MAX and self._loop is not None:
            self._late, self._rests_until_s = 0, self._loop.time() + PREDICT_REST_MS / 1000
        for each in told:
            each(0)

    def _give_up(self) -> None:
        """Predicted all waiting questions with "unknown"."""
        waiting, self._out = self._out, {}
        for told in waiting.values():
            for each in told:
                each(0)

    def trouble(self) -> str:
        """The problem, as part of a sentence; empty while the model is off, learning or in use."""
        if self._state is WORSE and self.trained is not None:
            score = self.trained.score
            return (
                f"the model of durations is off by {score.model:.0%}, more than the {score.sketch:.0%} of the"
                " sketch, which is used instead"
            )
        words = {
            MISSING: "scikit-learn is not installed, so the sketch alone predicts durations",
            SLOW: "the duration model answers too late and is not used for a while",
            FAILED: f"the model of durations cannot be trained ({self.failure}); the sketch predicts",
            DOWN: "the model of durations is down; the sketch predicts until it is back",
        }
        return words.get(self.state, "")
