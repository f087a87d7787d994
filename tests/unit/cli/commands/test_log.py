"""`duetime log`: what it shows of a folder, and that no damage passes it by."""

from __future__ import annotations

import asyncio
import json
import sqlite3

import pytest

from duetime import App, Retry
from duetime.cli import main


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder with a small history, closed."""
    monkeypatch.chdir(tmp_path)
    asyncio.run(live("duetime-data"))
    return tmp_path / "duetime-data"


async def live(folder: str) -> None:
    app = App(folder)

    @app.task(name="double")
    async def double(number: int) -> int:
        return 2 * number

    @app.task(name="fail", retry=Retry(max_attempts=1))
    async def fail() -> None:
        raise ValueError("never")

    async with app:
        for number in range(20):
            await double.options(id=f"d{number}").schedule(number)
        await double.options(id="later", delay="1h", tags={"for": "later"}).schedule(1)
        await app.handle("later").cancel()
        failed = await fail.options(id="f").schedule()
        with pytest.raises(Exception, match="DEAD_LETTERED"):
            await failed.result("5s")
        await app.handle("d19").result("5s")


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main.main(["log", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def segment_of(data):
    return next((data / "log").glob("*.seg"))


def flip(path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0xFF
    path.write_bytes(content)


def test_segments(data, capsys):
    code, out, _ = run(capsys, "segments", "--json")
    (segment,) = json.loads(out)
    assert code == 0
    assert segment["file"] == segment_of(data).name and segment["first"] == 0
    assert segment["records"] >= 20 and segment["frames"] >= 20 and segment["from"] < segment["to"]
    assert segment["bytes"] == segment_of(data).stat().st_size
    code, out, _ = run(capsys, "segments")
    assert code == 0 and out.splitlines()[0].split()[:2] == ["segment", "first"]
    assert segment["file"] in out and segment["to"] in out


def test_dump_shows_each_record_by_name(data, capsys):
    code, out, _ = run(capsys, "dump", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert lines[0]["command"] == "start" and (lines[0]["position"], lines[0]["index"]) == (0, 0)
    submits = [line for line in lines if line["command"] == "submit"]
    first = submits[0]
    assert first["items"][0]["id"] == "d0" and first["items"][0]["payload"] == [[0]]
    assert first["terms"][0]["target"] == {"type": "task", "name": "double"}
    assert {"submit", "settle", "cancel"} <= {line["command"] for line in lines}
    settled = [each for line in lines if line["command"] == "settle" for each in line["settlements"]]
    [failed] = [each for each in settled if each["id"] == "f"]
    failed.pop("waitedMs", None)  # only there when the function could not begin at once
    assert failed == {
        "id": "f",
        "delivery": 1,
        "outcome": {"type": "failed", "kind": "ValueError", "message": "never"},
    }
    cancelled = [line for line in lines if line["command"] == "cancel"]
    assert [line["id"] for line in cancelled] == ["later"] and cancelled[0]["at"].endswith("Z")
    code, text, _ = run(capsys, "dump")
    assert len(text.splitlines()) == len(lines) and text.startswith("0.0  2")


def test_dump_limit_and_from(data, capsys):
    _, out, _ = run(capsys, "dump", "--json")
    all_lines = out.splitlines()
    _, out, _ = run(capsys, "dump", "--json", "--limit", "3")
    assert out.splitlines() == all_lines[:3]
    fourth = json.loads(all_lines[3])["position"]
    _, out, _ = run(capsys, "dump", "--json", "--from", str(fourth))
    assert out.splitlines() == [line for line in all_lines if json.loads(line)["position"] >= fourth]


def test_dump_of_one_intent_shows_nothing_else(data, capsys):
    _, out, _ = run(capsys, "dump", "--json", "--intent", "later")
    submit, cancel = (json.loads(line) for line in out.splitlines())
    assert [item["id"] for item in submit["items"]] == ["later"]
    assert submit["items"][0]["executeAt"] > submit["at"] and len(submit["terms"]) == 1
    assert cancel["command"] == "cancel"
    _, out, _ = run(capsys, "dump", "--intent", "d7")
    submit, settle = out.splitlines()
    assert "  submit  " in submit and '"payload":[[7]]' in submit
    assert "  settle  " in settle and '"result":14' in settle and "d8" not in settle


def test_a_sound_folder_is_sound(data, capsys):
    code, out, err = run(capsys, "verify")
    assert code == 0 and not out and "No damage" in err
    code, out, _ = run(capsys, "verify", "--json")
    report = json.loads(out)
    assert report["sound"] is True and report["intents"] == 22 == report["rows"] and report["frames"] > 20


def test_without_a_store_everything_is_replayed(data, capsys):
    for file in data.glob("store.db*"):
        file.unlink()
    code, out, _ = run(capsys, "verify", "--json")
    report = json.loads(out)
    assert code == 0 and report["replayed"] == report["records"] and report["intents"] == 22


def test_every_damaged_frame_is_named(data, capsys):
    segment = segment_of(data)
    _, out, _ = run(capsys, "dump", "--json")
    places = [json.loads(line)["position"] for line in out.splitlines()]
    for position in (places[2], places[9]):
        flip(segment, 32 + position + 90)
    code, out, err = run(capsys, "verify")
    assert code == main.EXIT_DAMAGED
    assert [line.split(":")[0] for line in out.splitlines()] == [
        f"{segment.name} at {32 + places[2]}",
        f"{segment.name} at {32 + places[9]}",
    ]
    assert "error: 2 damaged places" in err
    assert run(capsys, "verify", "--json")[0] == main.EXIT_DAMAGED
    code, out, err = run(capsys, "dump")
    assert code == main.EXIT_DAMAGED and f"{segment.name} at {32 + places[2]}" in err
    code, out, err = run(capsys, "segments")
    assert code == main.EXIT_DAMAGED and segment.name in out and "checksum" in err


def test_a_damaged_row_is_named(data, capsys):
    store = sqlite3.connect(data / "store.db")
    (body,) = store.execute("SELECT body FROM intents WHERE seq = 3").fetchone()
    store.execute("UPDATE intents SET body = ? WHERE seq = 3", (body[:-1] + bytes([body[-1] ^ 1]),))
    store.commit()
    store.close()
    code, out, _ = run(capsys, "verify")
    assert code == main.EXIT_DAMAGED
    assert out == "store.db, row 3 of intents: the row does not match its checksum\n"


def test_a_store_that_is_no_database_is_damage(data, capsys):
    for file in data.glob("store.db*"):
        file.write_bytes(b"nothing of the kind " * 100)
    code, out, _ = run(capsys, "verify")
    assert code == main.EXIT_DAMAGED and "not a database" in out


def test_a_store_without_its_log_is_damage(data, capsys):
    segment_of(data).unlink()
    (data / "log" / "synced").unlink()
    code, out, _ = run(capsys, "verify")
    assert code == main.EXIT_DAMAGED and "do not belong together" in out


def test_beside_a_living_engine(data, capsys):
    async def look_while_it_runs() -> None:
        app = App(str(data))

        @app.task(name="double")
        async def double(number: int) -> int:
            return 2 * number

        async with app:
            for number in range(5):
                await double.schedule_many((n,) for n in range(200))
                code, out, _ = await asyncio.to_thread(run, capsys, "verify", "--json")
                report = json.loads(out)
                assert code == 0 and report["sound"]
                assert report["intents"] >= 22 + 200 * (number + 1), "what was accepted is seen"

    asyncio.run(look_while_it_runs())


@pytest.mark.parametrize("command", ["segments", "dump", "verify"])
def test_a_missing_folder_is_named_in_the_error(command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, command, "--data", "nowhere")
    assert code == main.EXIT_ERROR and not out
    assert "error: There is no log in nowhere." in err and "hint: " in err
    assert not (tmp_path / "nowhere").exists()
