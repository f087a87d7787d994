"""A server of its own for each test, the app on it, and an ear."""

from __future__ import annotations

import pytest

from tests.http.server import ServerProcess
from tests.receiver import Hooks
from tests.worker import functions
from tests.worker.process import Told
from tests.worker.waiting import ServerClock


@pytest.fixture
def server(tmp_path):
    with ServerProcess(tmp_path / "data") as server:
        yield server


@pytest.fixture
def app(server):
    functions.app.rewire(server.url)
    with functions.app as app:
        yield app


@pytest.fixture
def told():
    told = Told()
    yield told
    told.close()


@pytest.fixture
def clock(server):
    with Hooks() as hooks:
        yield ServerClock(server, hooks)
