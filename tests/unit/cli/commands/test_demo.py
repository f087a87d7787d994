"""`duetime demo`: it ends by itself, its account is right, and it would notice if it were not."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest

from duetime import Status
from duetime.cli import main
from duetime.cli.commands import demo


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


SMALL = ["--count", "200", "--seconds", "0.3"]


def test_every_intent_is_accounted_for(capsys):
    assert main.main(["demo", *SMALL, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["accounted"] is True and figures["problems"] == []
    assert figures["submitted"] == 200 == sum(figures["statuses"].values())
    ends = ("ACKED", "DEAD_LETTERED", "EXPIRED", "CANCELED")
    assert [figures["statuses"][name] for name in ends] == [182, 10, 4, 4]
    # Flaky ones took two or three deliveries, doomed ones three; missed and cancelled ones none.
    assert figures["deliveries"] == 146 + (2 + 3) * 8 + 12 + 8 + 3 * 6 + 4
    tiers = {tier["tier"]: tier for tier in figures["tiers"]}
    assert list(tiers) == ["ULTRA", "FAST", "HIGH", "STANDARD", "ECONOMY"]
    assert sum(tier["n"] for tier in tiers.values()) == 200 - 12 - 4 - 4
    assert all(0 <= t["p50Ms"] <= t["p99Ms"] <= t["maxMs"] for t in tiers.values())


def test_people_see_tables_and_what_to_try_next(capsys, tmp_path):
    assert main.main(["demo", *SMALL, "--data", "kept"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("tier ")
    assert "200 submitted = 182 ACKED + 10 DEAD_LETTERED + 4 EXPIRED + 4 CANCELED" in shown.out
    assert "All intents are accounted for" in shown.err and "duetime log verify --data kept" in shown.err
    assert "acked 182" in shown.err, "a line a second where no terminal is"
    assert (tmp_path / "kept" / "log").is_dir()


def test_a_temporary_folder_does_not_stay(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main.main(["demo", "--count", "100", "--seconds", "0.1", "--json"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_too_few_is_refused(capsys):
    assert main.main(["demo", "--count", "7"]) == main.EXIT_USAGE


def test_a_demo_continues_what_a_stopped_one_left():
    stopped = demo.Demo("kept", 100, 1.0)

    async def begin() -> None:
        async with stopped.app as app:
            stopped.run_id = app.new_id(stopped.clock.now_ms())
            await stopped.submit_all()
            await app.stop(drain_ms=0)

    asyncio.run(begin())
    figures = asyncio.run(demo.Demo("kept", 100, 0.1).run(quiet=True))
    assert figures.earlier > 50 and figures.accounted, figures.problems
    assert figures.deliveries > 150, "those of both"


@pytest.fixture
def finished():
    """A demo that has run, and the views of its intents."""
    run = demo.Demo(":memory:", 100, 0.1)
    kept: list = []
    figures_of = run.figures

    def keep(views):
        kept.extend(views)
        return figures_of(views)

    run.figures = keep  # type: ignore[method-assign]
    assert asyncio.run(run.run(quiet=True)).accounted
    run.figures = figures_of  # type: ignore[method-assign]
    return run, kept


def test_a_lost_intent_is_noticed(finished):
    run, views = finished
    figures = run.figures(views[1:])
    assert not figures.accounted and figures.problems == ["1 intents are gone"]


def test_an_intent_that_never_ends_is_noticed(finished):
    run, views = finished
    views[0] = msgspec.structs.replace(views[0], status=Status.DUE)
    figures = run.figures(views)
    assert not figures.accounted and figures.problems == [f"{views[0].intent_id} is still DUE"]


def test_a_wrong_end_is_noticed(finished):
    run, views = finished
    place = next(index for index, view in enumerate(views) if view.status is Status.ACKED)
    views[place] = msgspec.structs.replace(views[place], status=Status.DEAD_LETTERED)
    figures = run.figures(views)
    assert not figures.accounted and "ended as DEAD_LETTERED" in figures.problems[0]


def test_order_is_checked(finished):
    run, _ = finished
    account = f"{run.run_id}.0"
    run.deposited(account, 99)
    assert run.problems and "got message 99" in run.problems[0]


def test_problems_are_exit_1(monkeypatch, capsys):
    class Broken(demo.Demo):
        def figures(self, views):
            return super().figures(views[1:])

    monkeypatch.setattr(demo, "Demo", Broken)
    assert main.main(["demo", "--count", "100", "--seconds", "0.1"]) == 1
    shown = capsys.readouterr()
    assert "error: 1 intents are gone" in shown.err and "All intents are accounted for" not in shown.err
