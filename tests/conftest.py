"""What every test shares: options, hypothesis profiles, and what to do when a service is missing."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings

from tests import browser, services
from tests.services import Missing, Postgres

CI = os.environ.get("CI", "").lower() in ("1", "true")

# A developer's own settings must not decide what a test sees.
for variable in [name for name in os.environ if name.startswith("DUETIME_")]:
    del os.environ[variable]

# No deadline: on shared cores it measures the neighbours. Under CI the same examples every time, so
# that a change is judged by what it changed; the dice are thrown on laptops and by `make slow`.
settings.register_profile(
    "default", deadline=None, derandomize=CI, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("slow", settings.get_profile("default"), max_examples=2_000, derandomize=False)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what happened into the scenario files; look at the difference before keeping it",
    )


@pytest.fixture
def sqlite_connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """The connections to SQLite that are opened from now on, also those that are closed again."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def recorded(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", recorded)
    return opened


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether scenarios are to be written anew instead of compared."""
    return bool(request.config.getoption("--rewrite"))


@pytest.fixture(scope="session")
def seeds() -> range:
    """The simulator's seeds: a few by default, those of `SEEDS=1..1000` under `make slow`."""
    first, _, last = os.environ.get("SEEDS", "1..20").partition("..")
    return range(int(first), int(last or first) + 1)


@pytest.fixture(scope="session")
def kill_rounds() -> int:
    """How often a process is killed: a few times by default, `KILL_ROUNDS=50` under `make slow`."""
    return int(os.environ.get("KILL_ROUNDS", "3"))


@pytest.fixture(scope="session")
def service_missing() -> Callable[[str], NoReturn]:
    """Call it when a real service cannot be reached: skipped aloud on a laptop, a failure under CI."""

    def give_up(reason: str) -> NoReturn:
        if CI:
            pytest.fail(f"{reason}; under CI=true every service must be there")
        pytest.skip(reason)

    return give_up


@pytest.fixture(scope="session")
def postgres(service_missing: Callable[[str], NoReturn]) -> Iterator[Postgres]:
    """A real PostgreSQL, shared by the processes of this run and gone after it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    try:
        service = Postgres(run)
    except Missing as reason:
        service_missing(str(reason))
    yield service
    service.close()


@pytest.fixture(scope="session")
def chromium(service_missing: Callable[[str], NoReturn]) -> str:
    """The program of a real browser."""
    return program(service_missing, "chromium", *browser.NAMES)


@pytest.fixture(scope="session")
def java(service_missing: Callable[[str], NoReturn]) -> str:
    """Java, with its compiler."""
    return program(service_missing, "default-jdk-headless", "java")


@pytest.fixture(scope="session")
def promtool(service_missing: Callable[[str], NoReturn]) -> str:
    """What Prometheus checks its rules with."""
    return program(service_missing, "prometheus", "promtool")


def program(service_missing: Callable[[str], NoReturn], package: str, *names: str) -> str:
    try:
        return services.program(package, *names)
    except Missing as reason:
        service_missing(str(reason))
