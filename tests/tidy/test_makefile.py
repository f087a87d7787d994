"""`make run` installs what running needs; `make test` adds the development tools to the same place."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.tidy.source import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def clone(tmp_path):
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def would_do(clone, target):
    """The commands of a target, printed and not run."""
    done = subprocess.run(["make", "-n", target], cwd=clone, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("target", ["run", "demo", "simulate"])
def test_running_installs_no_tools_of_developers(clone, target):
    commands = would_do(clone, target)
    assert "'.[all]'" in commands and "'.[dev]'" not in commands


@pytest.mark.parametrize("target", ["test", "lint", "docs"])
def test_developing_installs_everything_at_once(clone, target):
    commands = would_do(clone, target)
    assert "'.[dev]'" in commands and "'.[all]'" not in commands


def test_tests_add_to_what_running_installed(clone):
    (clone / ".venv").mkdir()
    (clone / ".venv" / ".installed-to-run").touch()
    assert "install" not in would_do(clone, "run")
    assert "'.[dev]'" in would_do(clone, "test")


def test_after_the_tests_running_installs_nothing(clone):
    assert "touch .venv/.installed-to-run .venv/.installed" in would_do(clone, "setup")
