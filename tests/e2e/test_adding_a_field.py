"""A new field of an intent is declared once and appears at every door.

The test adds a field to a copy of the source: its declaration in `wire/intent.py` (what is sent and what is
shown stand there), and one line in `protocol/terms.py`, because the stored form is a decision of its own.
The generators do the rest. Then every door of a real server is asked.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

DECLARATION = """Colour = Annotated[str, Meta(max_length=16, description="Colour of the intent.")]
"""
SENT = SHOWN = "    colour: Colour | None = None\n"
STORED = "    colour: str | None = None\n"

DOORS = """
import asyncio, json, subprocess, sys
from pathlib import Path

from duetime import App, Client
from duetime.client.app.options import OptionFields
from duetime.v1 import intents_pb2 as pb
from tests.http.server import ServerProcess
from tests.grpc.subscriber import calling

folder = Path(sys.argv[1])
seen = {}


def command(*arguments: str) -> dict:
    run = [sys.executable, "-m", "duetime", *arguments, "--json", "--url", server.url]
    return json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)


with ServerProcess(folder) as server:
    body = {"stream": {"name": "s"}, "delayMs": 10_000_000, "colour": "red"}
    made = server.ask("POST", "/v1/intents", body).json
    seen["HTTP"] = server.ask("GET", f"/v1/intents/{made['intentId']}").json["colour"]
    seen["list"] = server.ask("GET", "/v1/intents").json["items"][0]["colour"]
    seen["batch"] = server.ask("POST", "/v1/intents/batch", [body]).json["items"][0]["intent"]["colour"]
    group = {"groupId": "g", "then": {"stream": {"name": "s"}}, "members": [body]}
    server.ask("POST", "/v1/groups", group)
    seen["member of a group"] = server.ask("GET", "/v1/intents/g.0").json["colour"]
    plan = {"everyMs": 60_000, "intent": {"stream": {"name": "s"}, "colour": "red"}}
    seen["schedule"] = server.ask("PUT", "/v1/schedules/s", plan).json["intent"]["colour"]
    seen["tick"] = server.ask("POST", "/v1/schedules/s/trigger").json["colour"]
    schema = server.ask("GET", "/openapi.json").json["components"]["schemas"]
    seen["OpenAPI"] = "red" if "colour" in schema["NewIntent"]["properties"] else None

    async def grpc() -> None:
        async with calling(server.grpc) as stub:
            new = pb.NewIntent(stream=pb.Stream(name="s"), delay_ms=10_000_000, colour="red")
            answer = await stub.Create(pb.CreateRequest(intent=new))
            seen["gRPC"] = answer.intent.colour

    asyncio.run(grpc())
    with Client(server.url) as client:
        shown = client.create(stream={"name": "s"}, delay_ms=10_000_000, colour="red").wait()
        seen["Python client"] = shown.colour
    for where in (server.url, ":memory:"):
        app = App(where)

        @app.task(name="paint", colour="red")
        def paint() -> None: ...

        with app:
            seen[f"App on {where[:4]}"] = paint.delay("1h").schedule().wait().view().wait().colour
    seen["command line"] = command("schedule", "stream:s", "--in", "1h", "--colour", "red")["colour"]
    put = command("schedules", "put", "t", "stream:s", "--every", "1h", "--colour", "red")
    seen["command line, schedules"] = put["intent"]["colour"]
assert "colour" in OptionFields.__annotations__
print(json.dumps(seen))
"""


def test_a_field_that_is_declared_appears_at_every_door(tmp_path):
    for name in ("src", "proto", "tools", "tests", "pyproject.toml"):
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tmp_path / name)
    intent = tmp_path / "src/duetime/wire/intent.py"
    _insert(intent, "class Callback(Out", DECLARATION + "\n\n", before=True)
    _insert(intent, "    shard_key: ShardKey | None = None\n", SENT)
    _insert(intent, "    shard_key: ShardKey | None = None\n\n\nclass Planned(", SHOWN, after_line=True)
    _insert(tmp_path / "src/duetime/protocol/terms.py", "    result_ttl_ms: int = 0\n", STORED)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'src'}{os.pathsep}{tmp_path}"}
    for module in ("tools.generate_proto", "tools.generate_options"):
        _python(tmp_path, environment, "-m", module)
    (tmp_path / "doors.py").write_text(DOORS)
    seen = _python(tmp_path, environment, "doors.py", str(tmp_path / "data"))
    assert set(json.loads(seen).values()) == {"red"}, seen


def _insert(file: Path, mark: str, line: str, *, before: bool = False, after_line: bool = False) -> None:
    text = file.read_text()
    assert mark in text, f"{file.name} has no {mark!r}"
    at = text.index(mark)
    if after_line:
        at = text.index("\n", at) + 1
    elif not before:
        at += len(mark)
    file.write_text(text[:at] + line + text[at:])


def _python(folder: Path, environment: dict[str, str], *arguments: str) -> str:
    run = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout
