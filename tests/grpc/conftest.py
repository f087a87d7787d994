"""One server for many tests: each uses ids and streams of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.server import ServerProcess


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server") / "data") as server:
        yield server
