"""Looks like a module of tasks, and is none of the project's: loading it is what must not happen."""

from __future__ import annotations

raise AssertionError("it was loaded because an intent named it")
