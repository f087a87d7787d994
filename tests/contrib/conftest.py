"""A server for all tests of a process, and real databases: each test gets one of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import psycopg
import pytest

from tests.http.server import ServerProcess

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("server") / "data") as server:
        yield server


@pytest.fixture
def queue(request) -> str:
    """A queue nobody else uses."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return f"{name[:80]}.{next(_numbers)}"


@pytest.fixture(scope="session")
def make_database(postgres, worker_id: str) -> Callable[[], str]:
    """Makes a database in PostgreSQL; gives its name."""

    def make() -> str:
        name = f"test_{worker_id}_{next(_numbers)}"
        with psycopg.connect(postgres.url("postgres", "postgresql"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return name

    return make


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path) -> str:
    """The address of an empty database, as SQLAlchemy writes it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'shop.db'}"
    make: Callable[[], str] = request.getfixturevalue("make_database")
    url: str = request.getfixturevalue("postgres").url(make())
    return url
