"""What is published is what works: the wheel, installed in a clean environment, used as a user would."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.e2e.process import ROOT

EVERYTHING = """
import importlib, pkgutil
import duetime
missing = [name for name in duetime.__all__ if not hasattr(duetime, name)]
assert not missing, missing
assert "site-packages" in duetime.__file__, duetime.__file__
EXTRAS = {
    "aiohttp", "google", "grpc", "httptools", "prometheus_client", "prompt_toolkit", "asgiref",
    "django", "django_tasks", "multidict", "numpy", "opentelemetry", "sentry_sdk", "sklearn", "sqlalchemy",
    "threadpoolctl", "yarl",
}
ROOMS = ("api", "serving", "channels", "insight", "v1", "cli")
BRIDGES = tuple(
    f"contrib.{name}" for name in ("outbox", "django", "opentelemetry", "prometheus", "sentry", "sqlalchemy")
)
MODEL = tuple(f"engine.predictions.{name}" for name in ("regressor", "trainer"))
SERVER = tuple(f"duetime.{room}" for room in (*ROOMS, *BRIDGES, *MODEL))
for module in pkgutil.walk_packages(duetime.__path__, "duetime.", onerror=lambda name: None):
    # The plugin and the contracts are for those who have pytest.
    if not module.name.startswith("duetime.testing") and module.name != "duetime.__main__":
        if module.name != "duetime.cli.commands.simulate":
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:  # only what serves may need more than the package itself
                assert error.name.partition(".")[0] in EXTRAS and module.name.startswith(SERVER), module.name
print(duetime.__version__)
"""


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    arguments = [str(part) for part in command]
    return subprocess.run(arguments, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, service_missing) -> Path:
    """The wheel, built from this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    # Without isolation if the backend is here: then nothing has to be fetched.
    built = run(
        sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder
    )
    if built.returncode:
        built = run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    if built.returncode:
        service_missing(f"The wheel cannot be built here: {built.stdout[-500:]}{built.stderr[-500:]}")
    found: Path = next(folder.glob("*.whl"))
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory, service_missing) -> Path:
    """The folder of the programs of a clean environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "venv", with_pip=True)
    programs: Path = folder / "venv" / "bin"
    done = run(
        programs / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        wheel,
        cwd=folder,
    )
    if done.returncode:
        service_missing(f"The wheel's dependencies cannot be installed here: {done.stderr[-500:]}")
    return programs


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "duetime/py.typed" in names and "duetime/client/app/app.py" in names
    assert {name.split("/")[0] for name in names} == {"duetime", wheel.name.split("-py3")[0] + ".dist-info"}


def test_the_wheel_describes_the_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        head, _, said = archive.read(name).decode().partition("\n\n")
    assert "Description-Content-Type: text/markdown" in head.splitlines()
    assert said.startswith("# Duetime") and "docs/guide.md" in said and len(said) > 5_000
    links = re.findall(r"\]\(([^)]*)\)", said)
    assert links and all(link.startswith("https://") for link in links), "others lead nowhere outside of here"


def test_help(installed, tmp_path):
    done = run(installed / "duetime", "--help", cwd=tmp_path)
    assert done.returncode == 0 and "demo" in done.stdout


def test_everything_public_can_be_imported(installed, tmp_path):
    done = run(installed / "python", "-I", "-c", EVERYTHING, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0.")


def test_a_server_says_which_extra_it_needs(installed, tmp_path):
    done = run(installed / "duetime", "serve", "--port", "0", cwd=tmp_path)
    assert done.returncode == 1
    assert "pip install 'duetime[server]'" in done.stderr
    done = run(installed / "duetime", "health", cwd=tmp_path)
    assert done.returncode == 1 and "duetime[client]" in done.stderr


def test_the_demo(installed, tmp_path):
    done = run(
        installed / "duetime", "demo", "--count", "200", "--seconds", "1", "--data", "kept", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["accounted"] is True
    done = run(installed / "duetime", "log", "verify", "--data", "kept", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
