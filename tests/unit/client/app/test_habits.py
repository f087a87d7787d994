"""Calls of other libraries are refused with what to write instead, and calls that are dropped warn."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

import pytest

from duetime import App, Dropped
from duetime.errors import InvalidField


@pytest.fixture
def app() -> App:
    return App(":memory:")


@pytest.fixture
def send(app: App) -> Any:
    @app.task(name="shop.mail.send")
    async def send(to: str = "", text: str = "") -> str:
        return f"{to}: {text}"

    return send


@pytest.mark.parametrize(
    ("args", "kwargs", "call"),
    [
        (("bob@x",), {}, "'bob@x'"),
        (("bob@x", "hello"), {}, "'bob@x', 'hello'"),
        (("bob@x",), {"text": "hello"}, "'bob@x', text='hello'"),
        ((), {"to": "bob@x"}, "to='bob@x'"),
        ((), {}, ""),
        (("",), {}, "''"),
    ],
)
def test_delay_with_the_arguments_of_the_function_says_what_to_write(send, args, kwargs, call):
    with pytest.raises(InvalidField) as caught:
        send.delay(*args, **kwargs)
    assert caught.value.message.startswith(f"send.delay({call}) schedules nothing: ")
    assert f"send.schedule({call})" in caught.value.hint
    assert f'send.delay("30s").schedule({call})' in caught.value.hint
    assert "duetime.contrib.celery" in caught.value.hint


@pytest.mark.parametrize("delay", ["30s", "1h30m", 5, 0.5])
def test_delay_with_a_duration_is_accepted(send, delay):
    send.delay(delay).bind("bob@x")
    send.delay(delay=delay).bind("bob@x")


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("apply_async", "task.schedule("),
        ("s", "task.bind("),
        ("si", "task.bind("),
        ("retry", "RetryAfter"),
        ("request", "duetime.current()"),
        ("send", "task.schedule("),
        ("enqueue", "task.schedule("),
    ],
)
def test_a_method_of_another_library_names_the_duetime_way(send, name, instead):
    assert not hasattr(send, name)
    with pytest.raises(AttributeError, match=f"A task has no '{name}'") as caught:
        getattr(send, name)
    assert instead in str(caught.value)


def test_methods_of_other_apps_and_results_name_the_duetime_way(app):
    handle = app.handle("an-id")
    for thing, name, instead in (
        (app, "send_task", "task.schedule("),
        (app, "conf", "@app.task("),
        (app, "AsyncResult", "app.handle(id)"),
        (app, "add_job", "@app.cron("),
        (handle, "get", "handle.result("),
        (handle, "state", "handle.status()"),
        (handle, "revoke", "handle.cancel()"),
    ):
        with pytest.raises(AttributeError) as caught:
            getattr(thing, name)
        assert instead in str(caught.value)
        assert "duetime.contrib.celery" in str(caught.value)


def test_an_unknown_name_is_a_plain_error(app, send):
    for thing in (app, send, app.handle("an-id")):
        with pytest.raises(AttributeError, match="has no 'colour'"):
            thing.colour  # noqa: B018  # asking is the test


def test_a_call_that_is_not_done_names_the_next_step(send):
    call = send.schedule("bob@x")
    with pytest.raises(AttributeError, match=r"not done yet.*Then ask the handle for its result"):
        call.get()
    call.close()


def dropped(drop: Any) -> tuple[str, str, int]:
    """The warning of a function that drops something: its text, its file, its line in the function."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        drop()
        gc.collect()
    (warning,) = caught
    assert warning.category is Dropped
    return str(warning.message), warning.filename, warning.lineno - drop.__code__.co_firstlineno


def test_a_call_that_is_never_awaited_warns_at_its_line(send):
    def drop() -> None:
        kept = [send]
        kept.append(send.schedule("bob@x"))
        del kept[0]

    text, file, line = dropped(drop)
    assert text.startswith("schedule() was never awaited, so nothing happened.")
    assert (file, line) == (__file__, 2)


def test_a_call_of_a_handle_is_named_as_the_program_called_it(app):
    def drop() -> None:
        app.handle("an-id").cancel()

    assert dropped(drop)[0].startswith("cancel() was never awaited")


def test_a_chain_that_is_never_awaited_warns_at_its_line(app, send):
    def drop() -> None:
        app.chain(
            send.bind("bob@x"),
            send.bind("eve@x"),
        )

    text, file, line = dropped(drop)
    assert text.startswith("chain() was never awaited")
    assert (file, line) == (__file__, 1)


@pytest.mark.parametrize("name", ["delay", "at"])
def test_a_time_without_a_schedule_warns_at_its_line(send, name):
    def drop() -> None:
        timed = getattr(send, name)(1_000)
        del timed

    text, file, line = dropped(drop)
    assert text == f"{name}() was never used, so nothing was scheduled. Write .schedule(...) after it."
    assert (file, line) == (__file__, 1)


def test_a_dropped_call_of_a_timed_task_warns_once(send):
    def drop() -> None:
        send.delay("1m").schedule("bob@x")

    assert dropped(drop)[0].startswith("schedule() was never awaited")


def test_a_used_call_or_time_does_not_warn(app, send):
    async def main() -> None:
        async with app:
            await send.schedule("bob@x")
            await send.delay("1d").schedule("bob@x")
            await send.delay("1d").options(priority="HIGH").schedule("bob@x")
            await send.at(2_000_000_000).schedule_many([("bob@x",)])
            await app.chain(send.delay("1d").bind("bob@x"))
            await asyncio.create_task(send.schedule("bob@x"))
            send.delay("1d").terms()
            send.options(priority="HIGH")  # options may be made in advance
            send.schedule("bob@x").close()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main())
        gc.collect()
