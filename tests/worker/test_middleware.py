"""A worker process runs the middleware of its app. Headers reach it over HTTP, the log and gRPC."""

from __future__ import annotations

import pytest

from tests.worker import hooked
from tests.worker.process import WorkerProcess

SOON = "30s"


@pytest.fixture
def app(server):
    hooked.app.rewire(server.url)
    with hooked.app as app:
        yield app


@pytest.fixture
def worker(server):
    with WorkerProcess(server, target="tests.worker.hooked:app") as worker:
        yield worker


@pytest.fixture(autouse=True)
def acme():
    token = hooked.tenant.set("acme")
    yield
    hooked.tenant.reset(token)


def told(task: str, queue: str, tenant: str = "acme", attempt: int = 1) -> list[object]:
    """What a function sees: the tenant, and the hooks in their order."""
    return [tenant, [f"{name} {task} {queue} {attempt}" for name in "ab"]]


@pytest.mark.parametrize("function", [hooked.coroutine, hooked.plain], ids=["coroutine", "thread"])
def test_a_header_reaches_the_function_and_every_attempt_has_hooks(app, worker, function):
    first = function.schedule().wait()
    again = function.schedule(2).wait()
    assert first.result(SOON).wait() == told(function.name, "default")
    assert again.result(SOON).wait() == told(function.name, "default", attempt=3)
    assert first.view().wait().headers == {"x-tenant": "acme"}
    worker.says(f"ended {again.id} 3")  # by a hook that waits
    assert len(worker.says(f"ended {again.id}", times=3)) == 3 and worker.says(f"ended {first.id} 1")


def test_a_function_in_a_process_has_its_hooks_there(app, worker):
    assert hooked.heavy.schedule().wait().result(SOON).wait() == told("heavy", "heavy")


def test_a_function_that_schedules_another_one_passes_the_header_on(app, worker):
    id = hooked.relays.schedule().wait().result(SOON).wait()
    assert app.handle(id).result(SOON).wait() == told("coroutine", "default")


def test_many_calls_a_chain_and_a_group(app, worker):
    handles = hooked.plain.schedule_many([(), ()]).wait()
    chain = app.chain(hooked.plain.bind(), hooked.coroutine.bind()).wait()
    group = app.group([hooked.plain.bind()], then=hooked.coroutine.bind()).wait()
    wanted = [told(name, "default") for name in ("plain", "plain", "coroutine", "coroutine")]
    assert [each.result(SOON).wait() for each in (*handles, chain, group)] == wanted


def test_a_message_to_an_entity(app, worker):
    handle = hooked.accounts("7").tell("deposit").wait()
    assert handle.result(SOON).wait() == told("Account.deposit", "")


def test_a_schedule_has_run_hooks_and_no_headers(app, worker):
    made = app.schedules.trigger("yearly").wait()
    assert app.handle(made.intent_id).result(SOON).wait() == told("yearly", "rules", tenant="none")


def test_an_intent_from_elsewhere_has_run_hooks_and_its_own_headers(server, app, worker):
    made = server.create(task={"name": "plain"}, delayMs=0, headers={"x-tenant": "other"})
    assert app.handle(made["intentId"]).result(SOON).wait() == told("plain", "default", tenant="other")
