"""Real services for tests, started by the tests themselves and gone when the last of them has ended.

A service belongs to one run of pytest, whose processes share it: the first that needs it starts it, under a
lock. Each holds the writing end of a pipe, and a guardian waits at the other: when all of them are gone,
killed or not, it stops the service and removes its folder.

    python -m tests.services FIFO LOCK FOLDER COMMAND...    is the guardian
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTALL_S, START_S = 600, 60
POSTGRES_PLACES = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "opt/homebrew/opt/postgresql*/bin")


class Missing(Exception):
    """The service is not on this machine and cannot be put there."""


class Postgres:
    """A PostgreSQL server of this run. `folder` is where its socket is."""

    def __init__(self, run: str) -> None:
        place = Path(tempfile.gettempdir()) / f"duetime-{os.getuid()}-{run}"
        fifo, lock, note = place.with_suffix(".fifo"), place.with_suffix(".lock"), place.with_suffix(".at")
        with locked(lock):
            held = _hold(fifo)
            if held is None:
                note.write_text(str(_start_postgres(fifo, lock)))
                held = _hold(fifo)
                assert held is not None, "the guardian listens before it says that it is ready"
            self.folder = note.read_text()
        self._held = held

    def url(self, database: str, driver: str = "postgresql+psycopg") -> str:
        return f"{driver}://postgres@/{database}?host={self.folder}"

    def close(self) -> None:
        os.close(self._held)


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _hold(fifo: Path) -> int | None:
    """The writing end of a pipe somebody reads."""
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


def _start_postgres(fifo: Path, lock: Path) -> Path:
    programs = _postgres_programs()
    user = _somebody()
    folder = Path(tempfile.mkdtemp(prefix="dtpg"))
    if user is not None:
        shutil.chown(folder, user)
    data = folder / "data"
    said = ["-U", "postgres", "-A", "trust", "-N", "--no-locale", "-E", "UTF8"]
    make = [f"{programs}/initdb", "-D", f"{data}", *said]
    done = subprocess.run(make, cwd=folder, user=user, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"initdb failed: {done.stderr}")
    # Killing a program is no power loss: nothing needs to reach the medium.
    serve = [programs / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
    fifo.unlink(missing_ok=True)
    os.mkfifo(fifo)
    guardian = [sys.executable, "-m", "tests.services", fifo, lock, folder, *serve]
    with (folder / "words").open("w") as words:
        # In a session of its own: what is sent to the tests' group is not meant for it.
        guard = subprocess.Popen(
            list(map(str, guardian)), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=words, start_new_session=True,
        )  # fmt: skip
    with guard:  # ends at once: the guardian itself is a child of it, and outlives this process
        assert guard.stdout is not None
        ready = guard.stdout.readline()
    if ready != b"ready\n":
        raise Missing(f"PostgreSQL did not start: {(folder / 'words').read_text()}")
    return folder


def _postgres_programs() -> Path:
    found = _find_postgres()
    if found is None:
        install("postgresql")
        found = _find_postgres()
    if found is None:
        raise Missing("PostgreSQL is not where its package puts it")
    return found


def _find_postgres() -> Path | None:
    places = [place for pattern in POSTGRES_PLACES for place in Path("/").glob(pattern)]
    places += [Path(found).resolve().parent for found in [shutil.which("postgres")] if found]
    whole = [place for place in places if (place / "postgres").exists() and (place / "initdb").exists()]
    return max(whole, key=lambda place: [int(part) for part in place.parts if part.isdigit()], default=None)


def install(package: str) -> None:
    """With the system's package manager."""
    if os.getuid() or not shutil.which("apt-get"):
        raise Missing(f"{package} is not on this machine, and only root can install it (apt-get)")
    with locked(Path(tempfile.gettempdir()) / f"duetime-{os.getuid()}-apt.lock"):
        _apt(package)


def program(package: str, *names: str) -> str:
    """A program by one of its names; its package is installed where that can be done."""
    for attempt in ("look", "install"):
        if attempt == "install":
            install(package)
        for name in names:
            if found := shutil.which(name):
                return found
    raise Missing(f"{names[0]} is not on this machine")


def _apt(package: str) -> None:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", package]
    error = b""
    for command in (install, ["apt-get", "update", "-q"], install):
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=INSTALL_S, check=False
        )
        if command is install and done.returncode == 0:
            return
        error = done.stderr
    raise Missing(f"{package} could not be installed: {error.decode(errors='replace')[-500:]}")


def _somebody() -> str | None:
    """Whom to be: PostgreSQL does not run as root."""
    if os.getuid():
        return None
    known = {each.pw_name for each in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


# The guardian.


def guard(fifo: Path, lock: Path, folder: Path, command: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watched = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with subprocess.Popen(command, user=_somebody(), cwd=folder, stdout=sys.stderr) as service:
        try:
            _wait_for_socket(service, folder)
            print("ready", flush=True)
            first = os.open(fifo, os.O_RDONLY)  # returns when somebody holds the other end
            os.close(watched)
            watched = first
            while not _all_gone(watched, fifo, lock):
                pass
        finally:
            service.send_signal(signal.SIGQUIT)  # at once
    shutil.rmtree(folder, ignore_errors=True)
    fifo.with_suffix(".at").unlink(missing_ok=True)


def _all_gone(watched: int, fifo: Path, lock: Path) -> bool:
    """Wait until nobody holds the other end; then let nobody take it up any more."""
    while os.read(watched, 1):
        pass
    with locked(lock):
        os.set_blocking(watched, False)
        try:
            os.read(watched, 1)
        except BlockingIOError:  # somebody came in between
            os.set_blocking(watched, True)
            return False
        fifo.unlink(missing_ok=True)
        lock.unlink(missing_ok=True)
        return True


def _wait_for_socket(service: subprocess.Popen[bytes], folder: Path) -> None:
    import psycopg

    left = START_S * 20
    while True:
        try:
            psycopg.connect(f"host={folder} user=postgres dbname=postgres").close()
            return
        except psycopg.OperationalError:
            left -= 1
            try:
                code = service.wait(0.05)
            except subprocess.TimeoutExpired:
                if left:
                    continue
                code = None
            raise SystemExit(f"the service did not come up (exit code {code})") from None


if __name__ == "__main__" and os.fork() == 0:
    guard(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
