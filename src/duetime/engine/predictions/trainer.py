"""The process of the model: trains with the finished intents in the store, and answers over its pipes.

It reads the store through its own read-only connection, so it cannot damage or block the engine. When the
engine ends, its input ends, and so does the process.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from time import perf_counter  # tidy: how long ago, not what time it is

from threadpoolctl import threadpool_limits

from duetime.clock import SystemClock
from duetime.engine.predictions.features import Row, row_of
from duetime.engine.predictions.messages import (
    Message,
    Predicted,
    Trained,
    TrainingFailed,
    read_request,
    write,
)
from duetime.engine.predictions.regressor import Regressor, judged
from duetime.limits import TRAIN_EVERY_MS, TRAIN_LOOK_MS, TRAIN_ROWS_MAX, TRAIN_ROWS_MIN
from duetime.store.archive import Archive


class Learner:
    """The newest model, and the decision when to train another."""

    def __init__(self, path: Path) -> None:
        self._archive = Archive(path)
        self._out = threading.Lock()
        self._ended = 0
        self._trained_s = 0.0
        self.model: Regressor | None = None

    def say(self, message: Message) -> None:
        with self._out:
            sys.stdout.buffer.write(write(message) + b"\n")
            sys.stdout.buffer.flush()

    def learn_for_ever(self, stop: threading.Event) -> None:
        with suppress(OSError):  # a sandbox may forbid it
            os.nice(10)  # only of this thread: requests are answered with normal priority
        while True:
            try:
                self.look()
            except Exception as error:
                self.say(TrainingFailed(f"{type(error).__name__}: {error}"))
            if stop.wait(TRAIN_LOOK_MS / 1000):
                return

    def look(self) -> None:
        """Train if there are enough new intents."""
        with self._archive.moment() as there:
            checkpoint = self._archive.checkpoint() if there else None
            ended = 0 if checkpoint is None else checkpoint.ended
            if not self._worth_it(ended - self._ended):
                return
            found = [intent for intent in self._archive.finished(TRAIN_ROWS_MAX) if intent.dispatched_at_ms]
        if len(found) < TRAIN_ROWS_MIN:
            return
        found.sort(key=lambda intent: intent.ended)
        rows: list[Row] = [
            row_of(each.terms, each.payload, each.created_at_ms, each.attempt) for each in found
        ]
        took_ms = [each.finished_at_ms - each.dispatched_at_ms for each in found]
        score, functions = judged(rows, took_ms)
        self.model = Regressor(rows, took_ms)
        self._ended, self._trained_s = ended, perf_counter()
        at_ms = SystemClock().now_ms()
        self.say(Trained(f"{at_ms}-{len(rows)}", at_ms, len(rows), score, functions))

    def _worth_it(self, new: int) -> bool:
        """Whether to train: for the first time with enough rows; later with many new rows, or with a few
        after some time."""
        if self.model is None:
            return new >= TRAIN_ROWS_MIN
        waited_ms = (perf_counter() - self._trained_s) * 1000
        return new > 0 and (waited_ms >= TRAIN_EVERY_MS or (new >= self._ended // 2 and waited_ms >= 60_000))


def main(path: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # SIGINT is for the engine, which ends this process
    threadpool_limits(limits=1)  # the engine needs the rest of the machine
    learner, stop = Learner(Path(path)), threading.Event()
    thread = threading.Thread(target=learner.learn_for_ever, args=(stop,), daemon=True)
    thread.start()
    for line in sys.stdin.buffer:
        ask, model = read_request(line), learner.model
        if model is not None:
            learner.say(Predicted(ask.number, model.expected_ms(ask.rows)))
    stop.set()


if __name__ == "__main__":
    main(sys.argv[1])
