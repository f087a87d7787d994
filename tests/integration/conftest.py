"""A real server and a real receiver of webhooks, for those who ask for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.http.server import ServerProcess
from tests.integration.proxy import Proxy
from tests.receiver import Hooks


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One for many tests: each uses ids and tags of its own."""
    with ServerProcess(tmp_path_factory.mktemp("server") / "data") as server:
        yield server


@pytest.fixture(scope="session")
def hooks() -> Iterator[Hooks]:
    with Hooks() as hooks:
        yield hooks


@pytest.fixture
def proxy(server: ServerProcess) -> Iterator[Proxy]:
    """A way to the server that can be cut."""
    with Proxy(server.url) as proxy:
        yield proxy


_numbers = itertools.count(1)


@pytest.fixture
def fresh(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Names that nobody else uses."""
    test = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:60]
    return lambda: f"{test}.{next(_numbers)}"
