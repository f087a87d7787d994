"""The tables of bench/README.md are those of the newest saved run, and every peer is measured."""

from __future__ import annotations

from bench.peers.peer import PEERS
from bench.peers.result import newest
from bench.peers.table import README, with_tables
from tests.tidy.source import ROOT

# What every peer's folder shares; the rest are peers.
SHARED = {
    "__init__", "__main__", "gauge", "install", "ours", "peer", "play", "race", "result", "services", "table",
}  # fmt: skip


def test_the_tables_are_those_of_the_newest_run():
    text = README.read_text(encoding="utf-8")
    assert with_tables(text, newest()) == text, "run `python -m bench.peers --render`"


def test_every_peer_is_measured():
    files = {path.stem for path in (ROOT / "bench" / "peers").glob("*.py")}
    assert files - SHARED == set(PEERS)
