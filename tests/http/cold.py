"""A server whose intents are soon on disk only, and the way to know that they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.http.server import ServerProcess

# Due in more than a second: on disk only, once the next checkpoint is there.
COLD = {"store__horizon_ms": 1_000, "store__checkpoint_ms": 100}
TRIES = 2_000


def cold_server(folder: Path, **settings: Any) -> ServerProcess:
    return ServerProcess(folder, **COLD, **settings)


def until_cold(server: ServerProcess, hot: int = 0) -> Any:
    """Wait until no more than so many intents are in memory; gives the store's numbers."""
    store: Any = None
    for _ in range(TRIES):
        store = server.ask("GET", "/v1/admin/chronoscope").json["store"]
        if store["hot"] <= hot and not store["unwritten"]:
            return store
    raise AssertionError(f"they stay in memory: {store}")
