"""Workers in other languages: those of `examples/`, in processes of their own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.process import ROOT, environment
from tests.http.server import ServerProcess
from tests.services import Missing

BASH = ROOT / "examples" / "worker_bash" / "worker.sh"
TYPESCRIPT = ROOT / "examples" / "worker_typescript"
BUILD = ROOT / "build" / "worker_typescript"
INSTALL_S = 240
WAIT_S = 60


class ForeignWorker:
    """A worker, and everything that it starts."""

    def __init__(self, command: list[str], variables: Mapping[str, str], cwd: Path = ROOT) -> None:
        env = {**environment(), **variables}
        self.process = subprocess.Popen(command, env=env, cwd=cwd, start_new_session=True)

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WAIT_S)

    def kill(self) -> None:
        """Kill it with its children, as the end of a container does."""
        with contextlib.suppress(ProcessLookupError):  # it has ended, and its children too
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(WAIT_S)

    def __enter__(self) -> ForeignWorker:
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()


def bash_worker(server: ServerProcess, queue: str, *command: str, **variables: str) -> ForeignWorker:
    return ForeignWorker(["bash", str(BASH), queue, *command], {"DUETIME_URL": server.url, **variables})


def typescript_worker(built: Path, server: ServerProcess, queue: str, **variables: str) -> ForeignWorker:
    own = {
        "DUETIME_GRPC": server.grpc.removeprefix("grpc://"),
        "DUETIME_PROTO": str(ROOT / "proto"),
        "QUEUE": queue,
    }
    return ForeignWorker(["node", str(built / "dist" / "main.js")], own | variables, built)


def build() -> Path:
    """The example in TypeScript with its packages, compiled. Raises Missing."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise Missing("node and npm are not on this machine")
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        packages = (TYPESCRIPT / "package.json").read_text()
        installed = BUILD / "installed"
        for path in TYPESCRIPT.iterdir():
            if path.is_file():
                shutil.copy(path, BUILD)
        if not installed.exists() or installed.read_text() != packages:
            command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
            done = subprocess.run(
                command, cwd=BUILD, timeout=INSTALL_S, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise Missing(f"npm cannot install the packages of the example: {done.stderr[-300:]}")
            installed.write_text(packages)
        run_node_program("tsc")
    return BUILD


def run_node_program(name: str, *arguments: str) -> str:
    """Run a program of the installed packages; it must succeed."""
    program = BUILD / "node_modules" / ".bin" / name
    done = subprocess.run(
        [str(program), *arguments], cwd=BUILD, timeout=INSTALL_S, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
    return done.stdout
