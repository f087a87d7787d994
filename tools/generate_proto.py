"""Makes src/duetime/v1 out of proto/. `make proto` runs this; the result is checked in."""

from __future__ import annotations

import sys
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).parents[1]
PROTO = ROOT / "proto"
SOURCES = sorted(PROTO.rglob("*.proto"))


def main() -> int:
    names = [str(path.relative_to(PROTO)) for path in SOURCES]
    out = ROOT / "src"
    return int(protoc.main(["protoc", f"-I{PROTO}", f"--python_out={out}", f"--pyi_out={out}", *names]))


if __name__ == "__main__":
    sys.exit(main())
