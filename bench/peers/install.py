"""Puts each peer into an environment of its own, and Redis and PostgreSQL onto a machine without them.

Exact versions, so that a table can be made again; from wherever pip and npm are set up to fetch. One
environment for each peer, because they do not agree on the version of redis-py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.peers.peer import Peer

ROOT = Path(__file__).parents[2]
HOME = ROOT / "build" / "peers"
# A package that hangs must not hang the benchmark.
INSTALL_S = 240
_POSTGRES = ("/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt/postgresql")


class Missing(Exception):
    """It cannot be installed here; the text says what was tried."""


def home_of(peer: Peer) -> Path:
    return HOME / (peer.name.lower().replace(" ", "-"))


def program_of(peer: Peer) -> list[str]:
    """What runs a peer's file."""
    if peer.language == "node":
        return [_found("node")]
    return [str(home_of(peer) / "bin" / "python"), "-m", "bench.peers.play"]


def install(peer: Peer) -> None:
    """Have it installed; raises Missing."""
    home = home_of(peer)
    stamp = home / "installed"
    wanted = " ".join(peer.packages)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    if peer.language == "node":
        (home / "package.json").write_text("{}")
        _run([_found("npm"), "install", "--no-audit", "--no-fund", "--silent", *peer.packages], home)
    else:
        _run([sys.executable, "-m", "venv", str(home)], home)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, *peer.packages], home)
    stamp.write_text(wanted)


def redis_server() -> str:
    return _program("redis-server", "redis-server", ())


def postgres_folder() -> Path:
    """Where `initdb`, `postgres` and `psql` are."""
    folders = [found for place in _POSTGRES for found in sorted(Path(place).glob("**/bin"), reverse=True)]
    return Path(_program("initdb", "postgresql", tuple(folders))).resolve().parent


def _program(name: str, package: str, folders: tuple[Path, ...]) -> str:
    path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", "")])
    found = shutil.which(name, path=path)
    if found is None and shutil.which("apt-get") and os.geteuid() == 0:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        _run(["apt-get", "update", "-qq"], HOME, environment)
        _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], HOME, environment)
        more = [*Path("/usr/lib/postgresql").glob("*/bin")]
        found = shutil.which(name, path=os.pathsep.join([*map(str, more), path]))
    if found is None:
        raise Missing(f"{name} is not on this machine: install {package}")
    return found


def _found(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Missing(f"{name} is not on this machine")
    return found


def _run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"{' '.join(command[:4])} ... took more than {INSTALL_S} s") from None
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise Missing(f"{' '.join(command[:4])} ... failed: {''.join(last)[:200]}")
