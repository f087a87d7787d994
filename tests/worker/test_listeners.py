"""With a server, `on_failure` and `on_dead_letter` read its events: the functions fail in a worker."""

from __future__ import annotations

import queue

import pytest

from duetime import App, Status, Transition
from duetime.errors import NotAcked
from tests.worker import functions
from tests.worker.process import WAIT_S, WorkerProcess
from tests.worker.waiting import until


def test_failures_on_a_worker_are_told_to_an_app_on_the_server(server, app):
    failures: queue.SimpleQueue[Transition] = queue.SimpleQueue()
    dead: queue.SimpleQueue[Transition] = queue.SimpleQueue()
    watching = App(server.url)

    @watching.on_failure
    async def failed(change: Transition) -> None:
        failures.put(change)

    watching.on_dead_letter(dead.put)
    with watching, WorkerProcess(server):
        until(lambda: opened(app, failures, dead))
        handle = functions.moody.options(tags={"tenant": "acme"}).schedule("fail").wait()
        assert handle.result("30s").wait() == "fail 2 2"
        first = next_of(failures, handle.id)
        assert (first.status, first.attempts, first.error_kind) == (Status.SCHEDULED, 1, "ValueError")
        assert (first.task, first.queue, first.error) == ("moody", "default", "not this time")
        assert first.tags == {"tenant": "acme"} and first.event_id
        lost = functions.moody.schedule("reject").wait()
        with pytest.raises(NotAcked):
            lost.result("30s").wait()
        assert next_of(dead, lost.id).error == next_of(failures, lost.id).error == "it is wrong"


def opened(app: App, *streams: queue.SimpleQueue[Transition]) -> bool:
    """Whether both streams of events are open: each tells of a new dead letter."""
    with pytest.raises(NotAcked):
        functions.breaks.schedule().wait().result("30s").wait()
    return not any(stream.empty() for stream in streams)


def next_of(stream: queue.SimpleQueue[Transition], id: str) -> Transition:
    while (found := stream.get(timeout=WAIT_S)).intent_id != id:
        pass
    return found
