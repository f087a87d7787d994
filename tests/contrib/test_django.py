"""Django's tasks and the outbox, with real databases, a real server and a real worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable
from datetime import timedelta

import django
import pytest

from duetime import App, Middleware, Reject, Run, errors
from tests.e2e.process import ROOT, SOURCE, environment
from tests.worker.process import WorkerProcess

SETTINGS = "tests.contrib.project.settings"
KILLED = -signal.SIGKILL
WAIT_S = 60


@pytest.fixture(scope="module")
def project(server, tmp_path_factory, request):
    """The project, set up in this process, with tables in its databases; gives its environment."""
    if "DJANGO_SETTINGS_MODULE" in os.environ:
        yield {name: value for name, value in os.environ.items() if name.startswith(("PROJECT", "DJANGO"))}
        return
    env = {
        "DJANGO_SETTINGS_MODULE": SETTINGS,
        "PROJECT_SQLITE": str(tmp_path_factory.mktemp("django") / "project.db"),
        "PROJECT_URL": server.url,
        "PROJECT_QUEUE": "shop",
    }
    postgres = request.getfixturevalue("postgres")
    make = request.getfixturevalue("make_database")
    env["PROJECT_POSTGRES"] = f"{postgres.folder}/{make()}"
    os.environ.update(env)
    django.setup()
    from django.core.management import call_command
    from django.db import connections

    for name in ("default", "postgres"):
        call_command("migrate", database=name, verbosity=0)
        connections[name].close()
    yield env
    for name in ("default", "postgres"):
        connections[name].close()
    for name in env:
        del os.environ[name]


@pytest.fixture(params=["default", "postgres"])
def database(request, project):
    """One of its databases, with an empty outbox."""
    from django.db import connections

    from duetime.contrib.django.models import OutboxRow

    OutboxRow.objects.using(request.param).all().delete()
    yield request.param
    connections[request.param].close()


@pytest.fixture(scope="module")
def worker(project, server):
    """A worker with the project's tasks."""
    env = {name: value for name, value in project.items() if name not in os.environ}
    os.environ.update(env)
    with WorkerProcess(server, target="duetime.contrib.django.worker:app") as worker:
        yield worker


def manage(*arguments: str) -> str:
    from io import StringIO

    from django.core.management import call_command

    said = StringIO()
    call_command(*arguments, stdout=said)
    return said.getvalue()


def relay(database: str) -> str:
    return manage("duetime_relay", "--tasks", database, "--once")


def waited(result):
    """The result, once it has ended: told by the server."""
    with App(os.environ["PROJECT_URL"]) as app:
        try:
            app.handle(result.id).result("60s").wait()
        except Exception as error:
            assert type(error).__name__ == "NotAcked"
    result.refresh()
    return result


def test_the_migration_is_what_the_model_says(project):
    from django.core.management import call_command

    call_command("makemigrations", "duetime", check=True, dry_run=True, verbosity=0)


def test_commit_means_scheduled_and_rollback_means_not(database, server):
    from django.db import transaction

    from tests.contrib.project.jobs import add

    ours = add.using(backend=database, queue_name="shop")
    with transaction.atomic(database):
        kept = ours.enqueue(1, b=2)
        assert "0 relayed" in relay_elsewhere(database)  # another connection does not see it yet
    with pytest.raises(ZeroDivisionError), transaction.atomic(database):
        lost = ours.enqueue(3, b=4)
        raise ZeroDivisionError
    assert ours.get_result(kept.id).status == "READY"  # known before it is relayed
    assert relay(database) == "1 relayed, 0 refused.\n"
    assert server.ask("GET", f"/v1/intents/{kept.id}").json["payload"] == [[1], {"b": 2}]
    assert server.ask("GET", f"/v1/intents/{lost.id}").status == 404
    assert ours.get_result(kept.id).args == [1]
    server.ask("POST", f"/v1/intents/{kept.id}/cancel")


def relay_elsewhere(database: str) -> str:
    """What the command says, in a process of its own."""
    env = environment() | {"PYTHONPATH": f"{SOURCE}:{ROOT}"}
    command = [sys.executable, "-m", "django", "duetime_relay", "--tasks", database, "--once"]
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_worker_runs_the_tasks(database, worker):
    from django.contrib.auth.models import Group
    from django.db import transaction
    from django.utils import timezone

    from tests.contrib.project import jobs

    with transaction.atomic(database):
        Group.objects.using("default").get_or_create(name="seen")
        sum = jobs.add.using(backend=database).enqueue(1, 2)
        hello = jobs.greet.using(backend=database).enqueue("you", loudly=True)
        found = jobs.found.using(backend=database).enqueue("seen")
        broken = jobs.broken.using(backend=database).enqueue()
        wrong = jobs.wrong.using(backend=database).enqueue()
        past = jobs.add.using(backend=database, run_after=timezone.now() - timedelta(days=1)).enqueue(0, 0)
        later = jobs.add.using(backend=database, run_after=timezone.now() + timedelta(days=1)).enqueue(0, 0)
    assert relay(database) == "7 relayed, 0 refused.\n"
    assert waited(sum).return_value == 3
    assert waited(hello).return_value == "hello you!" and hello.attempts == 1
    assert waited(found).return_value == [1, 1, found.id]
    assert waited(past).return_value == 0
    assert waited(broken).status == "FAILED" and "never works" in broken.errors[0].traceback
    later.refresh()
    assert later.status == "READY" and later.task.get_backend().alias == database
    wrong.refresh()
    while not wrong.errors:  # it is tried again
        wrong.refresh()
    assert wrong.errors[0].exception_class is ValueError and "jobs.py" in wrong.errors[0].traceback


def test_without_the_outbox_it_is_sent_at_once(project, worker):
    from django.db import connections, transaction

    from tests.contrib.project import jobs

    with transaction.atomic():
        result = jobs.add.using(backend="direct").enqueue(20, 22)
        assert waited(result).return_value == 42
    connections["default"].close()


def test_the_error_of_a_task_is_found_as_with_djangos_own_backends(project, worker):
    from tests.contrib.project import jobs

    for job, kind, last in (
        (jobs.broken, Reject, "Reject: never works\n"),
        (jobs.leaves, SystemExit, "SystemExit: This task leaves\n"),
        (jobs.leaves_the_loop, SystemExit, "SystemExit: This task leaves, too\n"),
        (jobs.wrong, ValueError, "ValueError: it is wrong\n"),
        (jobs.strange, TypeError, "models."),
    ):
        result = job.using(backend="direct").enqueue()
        while not result.errors:
            result.refresh()
        (error,) = result.errors
        assert error.exception_class is kind
        assert error.traceback.endswith(last) or job in (jobs.broken, jobs.strange), error.traceback


def test_the_time_of_enqueueing_stays_the_same(database, worker):
    from tests.contrib.project import jobs

    job = jobs.enqueued.using(backend=database, priority=7, queue_name="mail")
    made = job.enqueue()
    assert made.enqueued_at is not None
    assert job.get_result(made.id) == made  # still in the outbox
    relay(database)
    found = waited(job.get_result(made.id))
    assert found.enqueued_at == made.enqueued_at <= found.started_at <= found.finished_at
    assert found.return_value == made.enqueued_at.isoformat()
    direct = jobs.enqueued.using(backend="direct").enqueue()
    assert waited(direct).return_value == direct.enqueued_at.isoformat()


@pytest.mark.parametrize(
    "name",
    [
        "tests.contrib.project.trap.task",
        "tests.contrib.project.trap",
        "tests.contrib.project.jobs.Group",
        "os.system",
        "antigravity.task",
        "x",
        "",
    ],
)
def test_the_name_of_a_task_loads_nothing(project, name):
    from duetime.contrib.django.compat import task_backends

    registry = task_backends["default"].registry
    assert registry.find(name) is None
    before = set(sys.modules)
    assert registry.find(name) is None
    assert set(sys.modules) == before and "tests.contrib.project.trap" not in before


def test_a_worker_does_not_load_what_an_intent_names(server, worker):
    target = {"name": "tests.contrib.project.trap.task", "queue": "default"}
    made = server.create(delayMs=0, task=target, callback=None, redelivery={"maxAttempts": 1})
    worker.says("tests.contrib.project.trap.task.*does not have")
    assert not [line for line in worker.words if "AssertionError" in line]
    server.ask("POST", f"/v1/intents/{made['intentId']}/cancel")


def test_any_queue_is_allowed_by_an_empty_list(project, server):
    from duetime.client.worker.app_loader import sources_of
    from duetime.contrib.django.compat import task_backends
    from tests.contrib.project import jobs

    backend = task_backends["any-queue"]
    job = jobs.add.using(backend="any-queue", queue_name="one-of-many")
    result = job.enqueue(1, 2)
    assert job.get_result(result.id) == result
    app = backend.make_app()
    assert {"default", "mail"} <= set(sources_of(app, None, None)[0])
    assert sources_of(app, ["one-of-many"], None) == (["one-of-many"], [])
    with pytest.raises(errors.BadConfig, match="No function of the app is in the queue"):
        sources_of(task_backends["default"].make_app(), ["one-of-many"], None)


def test_an_unknown_result_is_an_error(database):
    from duetime.contrib.django.compat import TaskResultDoesNotExist
    from tests.contrib.project import jobs

    with pytest.raises(TaskResultDoesNotExist):
        jobs.add.using(backend=database).get_result("nobody-knows")


def test_refused_rows_are_kept_and_shown(database):
    from duetime.contrib.django import outbox
    from duetime.contrib.django.models import OutboxRow

    OutboxRow.objects.using(database).create(key="k", body="nonsense", created_ms=0)
    if database == "default":
        outbox.add(stream={"name": "news"})
    assert relay(database).endswith("1 refused.\n")
    assert manage("duetime_relay", "--tasks", database, "--status") == "0 waiting, 1 refused.\n"
    row = OutboxRow.objects.using(database).get()
    assert row.error.startswith("40003") and str(row).endswith(": k")
    OutboxRow.objects.using(database).update(
        body='{"idempotencyKey": "k", "delayMs": 0, "stream": {"name": "n"}}'
    )
    said = manage("duetime_relay", "--tasks", database, "--once", "--retry-refused")
    assert said == "1 refused rows are sent again.\n1 relayed, 0 refused.\n"


def test_functions_of_an_app_in_this_process(database, tmp_path):
    from django.db import transaction

    from duetime.contrib.django import outbox

    app, runs = App(str(tmp_path / "data")), threading.Event()

    @app.task
    def double(number: int) -> int:
        runs.set()
        return 2 * number

    with app, outbox.relay(app, using="default", poll_s=3_600):
        with transaction.atomic():
            id = outbox.schedule(double, 21)
        assert runs.wait(60), "the commit wakes the relay"
        assert app.handle(id).result("60s").wait() == 42


@pytest.mark.parametrize("what", ["sell-and-die", "die-selling"])
def test_killed_around_the_commit(database, what, server):
    queue = f"shop-{database}-{what}"
    env = environment() | {"PYTHONPATH": f"{SOURCE}:{ROOT}", "PROJECT_QUEUE": queue}

    def run(what: str) -> int:
        command = [sys.executable, "-m", "tests.contrib.project.killed", database, what]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, timeout=WAIT_S, check=False)
        assert done.returncode == KILLED, done.stderr
        return done.returncode

    def sums() -> list[int]:
        found = server.ask("GET", f"/v1/intents?queue={queue}").json["items"]
        return sorted(intent["payload"][0][0] for intent in found)

    run(what)
    assert sums() == []
    if what == "die-selling":
        assert relay(database) == "0 relayed, 0 refused.\n"
        return
    run("relay-and-die")
    assert sums() == [0, 1, 2]
    assert manage("duetime_relay", "--tasks", database, "--status") == "3 waiting, 0 refused.\n"
    assert relay(database) == "3 relayed, 0 refused.\n"
    assert sums() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_an_app_of_a_project_closes_its_connections_after_each_run(project, kind):
    from asgiref.sync import sync_to_async
    from django.db import connection

    from duetime.contrib.django.connections import DjangoConnections

    closed: list[bool] = []

    def query() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert connection.connection is not None
            return int(cursor.fetchone()[0])

    def note() -> None:
        closed.append(connection.connection is None)

    class Notes(Middleware):
        """The outermost: it runs after the connections are closed."""

        def run_ended(self, run: Run) -> Awaitable[None] | None:
            if kind == "plain":
                note()
                return None
            noting: Awaitable[None] = sync_to_async(note)()
            return noting

    async def async_query() -> int:
        found: int = await sync_to_async(query)()
        return found

    app = App(":memory:")
    app.add_middleware(Notes(), DjangoConnections())
    task = app.task(name="query")(query if kind == "plain" else async_query)
    with app:
        assert [task.schedule().wait().result("30s").wait() for _ in range(2)] == [1, 1]
    assert closed == [True, True]
