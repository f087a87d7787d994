"""Files that only their owner can read: a data folder holds payloads, results and hashes of tokens."""

from __future__ import annotations

import contextlib
import logging
import stat
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
_OTHERS: Final = 0o077
_logger = logging.getLogger("duetime")


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user only."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_folder(folder.parent)
    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)


def tighten(folder: Path, own: tuple[str, ...]) -> None:
    """Take the rights of others away from what is ours in a folder: what has these names (patterns), and the
    folder itself if it holds nothing else."""
    with contextlib.suppress(OSError):  # whoever opens the folder next says what is wrong with it
        _tighten(folder, own)


def _tighten(folder: Path, own: tuple[str, ...]) -> None:
    entries = list(folder.iterdir())
    ours = [each for each in entries if any(fnmatch(each.name, name) for name in own)]
    wide = [path for each in ours for path in _wide(each)]
    if len(ours) == len(entries):
        wide += [folder] if _is_wide(folder) else []
    tightened = sum(_take_away(path) for path in wide)
    if tightened:
        _logger.warning(
            "Other users could read %s: the access to %d files and folders is now restricted to this user.",
            folder,
            tightened,
        )


def _wide(path: Path) -> list[Path]:
    inside = [found for each in path.iterdir() for found in _wide(each)] if _is_folder(path) else []
    return [*inside, path] if _is_wide(path) else inside


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_wide(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISLNK(mode) and bool(mode & _OTHERS)


def _take_away(path: Path) -> bool:
    try:
        path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~_OTHERS)
    except OSError:  # it belongs to somebody else, who decided this; or it is gone
        return False
    return True
