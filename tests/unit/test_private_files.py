"""Files of a data folder: for their owner only, whatever the umask, also those that were wider before."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from duetime import App, private_files, wiring
from duetime.api.access import tokens
from duetime.config import Config

OWN = ("log", "store.db*")


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """What is in a folder and what others may do with it, if anything."""
    found = {".": folder, **{str(path.relative_to(folder)): path for path in folder.rglob("*")}}
    return {
        name: oct(mode)
        for name, path in found.items()
        if (mode := stat.S_IMODE(path.stat().st_mode)) != (0o700 if path.is_dir() else 0o600)
    }


def test_an_engine_makes_private_files(tmp_path):
    folder = tmp_path / "new" / "data"
    app = App(str(folder))

    @app.task
    async def work() -> int:
        return 1

    with app:
        assert work.schedule().wait().result(10).wait() == 1
        tokens.new(folder, "admin", "me")
        assert {"store.db", "store.db-wal", "log", "tokens.json"} <= {each.name for each in folder.iterdir()}
        assert modes(folder) == {}
        wiring.backup(folder, tmp_path / "copies" / "copy")
        assert modes(tmp_path / "copies" / "copy") == {}
    assert modes(folder) == {}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_a_folder_open_to_others_is_made_private_with_a_warning(tmp_path, caplog):
    folder = tmp_path / "data"
    with App(str(folder)):
        pass
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o644)
    with caplog.at_level(logging.WARNING, "duetime"):
        wiring.in_folder(folder, Config())
    assert modes(folder) == {}
    assert "Other users could read" in caplog.text


def test_a_folder_with_other_things_stays_as_it_is(tmp_path):
    (tmp_path / "log").mkdir(0o755)
    (tmp_path / "photos").mkdir(0o755)
    (tmp_path / "store.db-wal").write_bytes(b"")
    tmp_path.chmod(0o755)
    private_files.tighten(tmp_path, OWN)
    assert modes(tmp_path) == {".": "0o755", "photos": "0o755"}


def test_links_are_not_followed_and_what_is_not_there_is_no_error(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir(0o755)
    folder = tmp_path / "data"
    folder.mkdir(0o700)
    (folder / "log").symlink_to(outside)
    private_files.tighten(folder, OWN)
    assert stat.S_IMODE(outside.stat().st_mode) == 0o755
    private_files.tighten(tmp_path / "nothing", OWN)
