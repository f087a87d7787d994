"""The long description of the package: the README, whose links into this repository are plain names.

Where packages are listed there is no repository around the text: a link to docs/guide.md would lead nowhere.
Called by the build backend.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import (  # type: ignore[import-not-found,unused-ignore]
    MetadataHookInterface,
)

_LINK = re.compile(r"\[([^\]]+)\]\((?!https?://)[^)]*\)")


class Description(MetadataHookInterface):  # type: ignore[misc,unused-ignore]
    """Gives the build `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": _LINK.sub(r"\1", text)}
