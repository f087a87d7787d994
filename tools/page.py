"""How a generated page is written: where it comes from, and the rows of its tables."""

from __future__ import annotations

ORIGIN = "<!-- Written by tools/generate_docs.py. Change the code, then run make docs. -->"


def row(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def page(lines: list[str]) -> str:
    return "\n".join([ORIGIN, *lines, ""])
