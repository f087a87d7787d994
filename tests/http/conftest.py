"""One server for many tests: each uses ids, keys, paths and queues of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.http.life import Life
from tests.http.listener import Listener
from tests.http.server import ServerProcess
from tests.receiver import Hooks


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server") / "data") as server:
        yield server


@pytest.fixture(scope="session")
def hooks() -> Iterator[Hooks]:
    with Hooks() as hooks:
        yield hooks


@pytest.fixture(scope="session")
def events(server: ServerProcess) -> Iterator[Listener]:
    """Everything that happens in the shared server."""
    with Listener(server) as listener:
        yield listener


_numbers = itertools.count(1)


@pytest.fixture
def fresh(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Names that nobody else uses."""
    test = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:60]
    return lambda: f"{test}.{next(_numbers)}"


@pytest.fixture
def life(server: ServerProcess, hooks: Hooks, events: Listener, fresh: Callable[[], str]) -> Life:
    """Brings intents into any state."""
    return Life(server, hooks, events, fresh)
