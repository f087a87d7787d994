"""A copy taken while the engine runs: it is whole, and everything acknowledged before it is in it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from duetime import App, Status, errors, wiring
from duetime.config import Config
from duetime.settings import LogSettings, StoreSettings


def busy_app(folder) -> tuple:
    """Small segments and quick checkpoints, so that the log is cut all the time."""
    app = App(
        str(folder),
        config=Config(
            log=LogSettings(segment_bytes_max=2**20, history_bytes=0),
            store=StoreSettings(checkpoint_ms=100),
        ),
    )

    @app.task(name="work")
    async def work(number: int, more: str = "") -> int:
        return number

    return app, work


def test_a_copy_of_a_busy_folder_is_whole(tmp_path):
    app, work = busy_app(tmp_path / "data")
    stop = threading.Event()
    acknowledged: list[str] = []

    async def submit() -> None:
        number = 0
        while not stop.is_set():
            numbers = range(number, number + 50)
            handles = await work.delay("1h").schedule_many((n, "x" * 500) for n in numbers)
            await work.schedule_many((n,) for n in numbers)
            acknowledged.extend(handle.id for handle in handles)
            number += 50

    with app:
        writing = threading.Thread(target=app.call(submit()).wait)
        writing.start()
        try:
            for copy in ("a", "b", "c"):
                while len(acknowledged) < 500:
                    writing.join(0.01)
                before = list(acknowledged)
                made = wiring.backup(tmp_path / "data", tmp_path / copy)
                assert made.position > 0 and made.intents >= len(before)
                assert not wiring.verify(tmp_path / copy).findings
                _check(tmp_path / copy, before)
        finally:
            stop.set()
            writing.join()


def _check(folder, ids) -> None:
    """An app on the copy knows every one of them."""
    app, _ = busy_app(folder)

    async def look() -> None:
        async with app:
            for id in ids:
                assert await app.handle(id).status() is Status.SCHEDULED

    asyncio.run(look())


def test_a_closed_folder_can_be_copied_too(tmp_path):
    app, work = busy_app(tmp_path / "data")
    with app:
        handle = work.delay("1h").schedule(1).wait()
    (tmp_path / "data" / "tokens.json").write_text("[]")
    (tmp_path / "data" / "tokens.json").chmod(0o600)
    (tmp_path / "copy").mkdir()
    made = wiring.backup(tmp_path / "data", tmp_path / "copy")
    assert (made.intents, made.segments) == (1, 1)
    assert (tmp_path / "copy" / "tokens.json").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["log", "store.db", "tokens.json"]
    _check(tmp_path / "copy", [handle.id])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "data"], "nothing else is left"


def test_an_existing_backup_is_not_overwritten(tmp_path):
    app, _ = busy_app(tmp_path / "data")
    with app:
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "mine").write_text("keep")
        with pytest.raises(errors.InvalidField, match="not empty"):
            wiring.backup(tmp_path / "data", tmp_path / "full")
        with pytest.raises(errors.InvalidField, match="not empty"):
            wiring.backup(tmp_path / "data", tmp_path / "full" / "mine")
    assert (tmp_path / "full" / "mine").read_text() == "keep"
    with pytest.raises(errors.BadConfig, match="no log"):
        wiring.backup(tmp_path / "nothing", tmp_path / "copy")


def test_a_damaged_folder_gives_no_copy(tmp_path):
    app, work = busy_app(tmp_path / "data")
    with app:
        work.schedule_many((n, "x" * 100) for n in range(500)).wait()
    segment = sorted((tmp_path / "data" / "log").glob("*.seg"))[0]
    body = bytearray(segment.read_bytes())
    body[200] ^= 0xFF
    segment.write_bytes(body)
    with pytest.raises(errors.Damaged):
        wiring.backup(tmp_path / "data", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
