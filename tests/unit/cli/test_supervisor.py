"""Worker processes: which files `--reload` watches, and what it needs."""

from __future__ import annotations

import sys

import pytest

from duetime.cli.supervisor import is_source, supervise
from duetime.errors import BadConfig


@pytest.mark.parametrize(
    ("file", "watched"),
    [
        ("app.py", True),
        ("package/tasks.py", True),
        ("notes.txt", False),
        (".app.py", False),  # an editor's lock file
        (".git/hook.py", False),
        ("package/__pycache__/tasks.py", False),
        ("web/node_modules/tool/build.py", False),
        ("env/lib/site.py", False),
        ("environment/lib.py", True),
    ],
)
def test_only_sources_of_the_project_are_watched(tmp_path, monkeypatch, file, watched):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert is_source(None, str(tmp_path / file)) is watched


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(BadConfig, match="needs watchfiles") as caught:
        supervise(lambda number: [], 1, reload=True)
    assert "duetime[reload]" in caught.value.hint
