"""Makes src/duetime/v1 out of proto/. `make proto` runs this; the result is checked in.

A field of `wire.intent` that the messages of an intent lack is added to them first, with the next number. The
numbers are a promise to callers: the file keeps them, and nothing but this adds to them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec.inspect as types
from grpc_tools import protoc
from msgspec import Struct

from duetime.wire import intent as wire
from duetime.wire.declarations import description, fields_of, parts

ROOT = Path(__file__).parents[1]
PROTO = ROOT / "proto"
SOURCES = sorted(PROTO.rglob("*.proto"))
INTENTS = PROTO / "duetime" / "v1" / "intents.proto"
MESSAGES: dict[str, type[Struct]] = {
    "NewIntent": wire.NewIntent,
    "Intent": wire.Intent,
    "PatchRequest": wire.PatchIntent,
    "ReviveRequest": wire.ReviveIntent,
}
_SCALARS = {
    types.StrType: "string",
    types.IntType: "int64",
    types.FloatType: "double",
    types.BoolType: "bool",
}


def complete(text: str) -> str:
    """The messages with every field of their Structs."""
    for name, struct in MESSAGES.items():
        found = re.search(rf"^message {name} {{\n(.*?)^}}", text, re.MULTILINE | re.DOTALL)
        assert found is not None, name
        body = found[1]
        known = {each.removesuffix("_ms") for each in re.findall(r"(\w+) = \d+;", body)}
        number = max(map(int, re.findall(r" = (\d+);", body)))
        for field in fields_of(struct):
            if field.name.removesuffix("_ms") not in known:
                number += 1
                body += f"  {_kind(field.type)} {field.name} = {number};  // {description(field.type)}\n"
        text = text.replace(found[1], body, 1)
    return text


def _kind(kind: types.Type) -> str:
    """The type of a field in a message: a map of texts, or an optional scalar."""
    kinds = [type(part) for part in parts(kind)]
    if types.DictType in kinds:
        return "map<string, string>"
    return f"optional {next(_SCALARS[each] for each in kinds if each in _SCALARS)}"


def main() -> int:
    INTENTS.write_text(complete(INTENTS.read_text()))
    names = [str(path.relative_to(PROTO)) for path in SOURCES]
    out = ROOT / "src"
    return int(protoc.main(["protoc", f"-I{PROTO}", f"--python_out={out}", f"--pyi_out={out}", *names]))


if __name__ == "__main__":
    sys.exit(main())
