"""The narrator: every rule begins and ends, quiet is healthy, and the sentence has the numbers."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from duetime.engine.reads.meter import Meter
from duetime.insight.health import Narrator
from duetime.insight.rules import RULES, Signs, TierSign
from duetime.limits import LOG_HISTORY_BYTES, TIER_NAMES, TIER_WINDOW_MS
from duetime.protocol.command import Pause
from duetime.protocol.outcome import Rejected, Settlement, Snoozed
from duetime.protocol.terms import Callback, Limit, Stream, Task, Tier
from duetime.testing.time import ManualClock
from tests.unit.insight.rig import NOW, run, world

GIB = 1 << 30
QUIET = Signs(
    now_ms=NOW,
    tiers=tuple(TierSign(name, TIER_WINDOW_MS[n]) for n, name in enumerate(TIER_NAMES)),
    disk_free_bytes=100 * GIB,
    disk_reserve_bytes=GIB // 8,
    memory_bytes=GIB,
    memory_max_bytes=10 * GIB,
)


def late(p99_ms: float, count: int = 100, **fields) -> Signs:
    return replace(QUIET, tiers=(TierSign("ULTRA", 10, 5.0, p99_ms, count, **fields),))


# For each rule: what sets it off, what does not yet end it, and what ends it.
STORIES = {
    "ENGINE_FAILED": (replace(QUIET, failure="the disk is gone"), None, QUIET),
    "NOT_READY": (replace(QUIET, not_ready=("RECOVERING",)), None, QUIET),
    "LATE": (late(11.0), late(9.0), late(7.9)),
    "REFUSING": (late(5.0, refuses=True), None, QUIET),
    "DEAD_LETTERS": (
        replace(QUIET, dead_hour=12, dead_minutes=12),
        replace(QUIET, dead_hour=12, dead_minutes=5),
        replace(QUIET, dead_hour=12, dead_minutes=4),
    ),
    "DISK_FULL": (
        replace(QUIET, disk_free_bytes=GIB // 8 - 1),
        replace(QUIET, disk_free_bytes=GIB // 8 + 1),
        replace(QUIET, disk_free_bytes=GIB // 4),
    ),
    "DISK_LOW": (
        replace(QUIET, disk_free_bytes=GIB // 2 - 1),
        replace(QUIET, disk_free_bytes=GIB // 2 + 1),
        replace(QUIET, disk_free_bytes=GIB),
    ),
    "SYNC_SLOW": (
        replace(QUIET, sync_p99_ms=300.0),
        replace(QUIET, sync_p99_ms=150.0),
        replace(QUIET, sync_p99_ms=None),
    ),
    "CHECKPOINT_LAG": (
        replace(QUIET, checkpoint_lag_bytes=LOG_HISTORY_BYTES + 1),
        replace(QUIET, checkpoint_lag_bytes=LOG_HISTORY_BYTES - 1),
        replace(QUIET, checkpoint_lag_bytes=1),
    ),
    "MEMORY_HIGH": (
        replace(QUIET, memory_bytes=9 * GIB),
        replace(QUIET, memory_bytes=8 * GIB),
        replace(QUIET, memory_bytes=7 * GIB),
    ),
    "BACKLOG_GROWING": (
        replace(QUIET, waiting=3_000, waiting_before=1_000),
        replace(QUIET, waiting=3_000, waiting_before=3_000),
        replace(QUIET, waiting=100, waiting_before=3_000),
    ),
    "NO_CONSUMER": (replace(QUIET, unserved={"stream:news": 3}), None, QUIET),
    "WORKER_IDLE": (replace(QUIET, idle={"w1": "'w1' is connected and asks for nothing"}), None, QUIET),
    "BREAKER_OPEN": (replace(QUIET, breakers=("shop.example",)), None, QUIET),
    "TOKENS_UNREADABLE": (replace(QUIET, tokens="tokens.json cannot be read"), None, QUIET),
    "FILES_SHORT": (replace(QUIET, doors={"http": "http refuses new connections"}), None, QUIET),
    "NO_MODEL": (replace(QUIET, model="it is down"), None, QUIET),
    "PAUSED": (replace(QUIET, paused=("task:mail",)), None, QUIET),
}
BY_CODE = {rule.code: rule for rule in RULES}


class Listener:
    """Judges one moment after the other."""

    def __init__(self) -> None:
        self.narrator = Narrator(ManualClock(), Meter())
        self.now_ms = NOW

    def hears(self, signs: Signs, after_ms: int = 0):
        self.now_ms += after_ms
        return self.narrator.judge(replace(signs, now_ms=self.now_ms))

    def codes(self, signs: Signs, after_ms: int = 0) -> list[str]:
        return [anomaly.code for anomaly in self.hears(signs, after_ms).anomalies]


def test_every_rule_has_its_story():
    assert set(STORIES) == set(BY_CODE)


@pytest.mark.parametrize("code", STORIES)
def test_a_rule_begins_in_its_time_and_ends_in_its_time(code):
    rule, (bad, between, good) = BY_CODE[code], STORIES[code]
    listener = Listener()
    assert listener.codes(good) == []
    if rule.after_ms:
        assert listener.codes(bad) == []
        assert listener.codes(bad, rule.after_ms - 1) == []
        since_ms = listener.now_ms - rule.after_ms + 1
    else:
        since_ms = listener.now_ms
    found = listener.hears(bad, 1 if rule.after_ms else 0)
    assert [anomaly.code for anomaly in found.anomalies] == [code]
    anomaly = found.anomalies[0]
    assert anomaly.since.endswith("Z")
    assert anomaly.detail
    assert anomaly.meaning == rule.meaning
    assert anomaly.advice == rule.advice
    assert found.status == ("UP" if rule.severity == "NOTE" else rule.severity)
    assert since_ms >= NOW
    if between is not None:
        assert listener.codes(between, 3_600_000) == [code], "the weaker sign holds it"
    if rule.until_ms:
        assert listener.codes(good) == [code]
        assert listener.codes(good, rule.until_ms - 1) == [code]
        assert listener.codes(good, 1) == []
    else:
        assert listener.codes(good) == []
    assert listener.hears(good).status == "UP"


@pytest.mark.parametrize("code", [code for code, story in STORIES.items() if story[1] is not None])
def test_the_weaker_sign_begins_nothing(code):
    listener = Listener()
    between = STORIES[code][1]
    assert between is not None
    assert listener.codes(between) == []
    assert code not in listener.codes(between, 3_600_000)


def test_an_anomaly_that_returns_while_it_ends_keeps_its_start():
    listener, rule = Listener(), BY_CODE["LATE"]
    listener.hears(late(20.0))
    since = listener.hears(late(20.0), rule.after_ms).anomalies[0].since
    listener.hears(QUIET, 1_000)
    again = listener.hears(late(20.0), rule.until_ms - 1).anomalies
    assert again[0].since == since
    assert listener.codes(QUIET, rule.until_ms - 1) == ["LATE"]


def test_a_short_anomaly_is_not_reported():
    listener, rule = Listener(), BY_CODE["LATE"]
    listener.hears(late(20.0))
    assert listener.codes(QUIET, 1_000) == []
    assert listener.codes(late(20.0), rule.after_ms) == []


def test_a_few_late_ones_say_nothing_about_a_percentile():
    listener = Listener()
    listener.hears(late(99.0, count=4))
    assert listener.codes(late(99.0, count=4), 60_000) == []


def test_a_usual_rate_of_dead_letters_is_no_surge():
    usual = replace(QUIET, dead_hour=240, dead_minutes=20)
    assert Listener().codes(usual) == []
    assert Listener().codes(replace(QUIET, dead_hour=290, dead_minutes=70)) == ["DEAD_LETTERS"]


def test_a_full_disk_is_not_called_low_as_well():
    listener = Listener()
    full = replace(QUIET, disk_free_bytes=1)
    listener.hears(full)
    assert listener.codes(full, 60_000) == ["DISK_FULL"]


def test_quiet_is_healthy_for_ever():
    listener = Listener()
    health = listener.hears(QUIET)
    for _ in range(100):
        health = listener.hears(replace(QUIET, scheduled=3, next_ms=NOW + 10**10), 3_600_000)
        assert health.status == "UP"
        assert health.anomalies == []
    assert health.narrative.startswith("On time: nothing was due in the last minutes; 0 deliveries under way")


def test_a_degraded_summary_does_not_begin_with_on_time():
    listener = Listener()
    waits = replace(QUIET, due=1, unserved={"task:mail": 1})
    assert listener.hears(waits).narrative.startswith("Up: no lateness was measured in the last minutes; ")
    health = listener.hears(replace(waits, paused=("task:a",)), 20_000)
    assert health.status == "DEGRADED"
    assert health.narrative == (
        "Degraded: 1 intent of task:mail waits and no worker takes it; no lateness was measured in the"
        " last minutes; 0 deliveries under way, 1 due, 0 intents scheduled. But task:a is paused."
    )
    more = listener.hears(replace(waits, due=2, unserved={"task:mail": 2}))
    assert "2 intents of task:mail wait and no worker takes them" in more.narrative


def test_the_sentence_has_the_numbers():
    listener = Listener()
    busy = replace(
        QUIET,
        tiers=(TierSign("STANDARD", 500, 3.0, 12.4, 500), TierSign("ECONOMY", 1_000)),
        running=1, due=2_000, scheduled=31_000, next_ms=NOW + 2_500, dead_hour=3,
    )  # fmt: skip
    assert listener.hears(busy).narrative == (
        "On time: lateness at p99 is 12 ms for STANDARD (bound 500 ms); 1 delivery under way, 2,000 due,"
        " 31,000 intents scheduled, the next in 2.5 s, 3 dead letters in the last hour."
    )
    listener.hears(late(30.0))
    late_now = listener.hears(replace(late(30.0), failure=None, paused=("a", "b")), 10_000)
    assert late_now.narrative.startswith("Late: ULTRA is 30 ms late at p99, its bound is 10 ms; ")
    assert late_now.narrative.endswith("But a is paused, and 1 more problem.")
    down = listener.hears(replace(QUIET, failure="The log stopped."))
    assert down.narrative == "Down: The log stopped."
    assert down.status == "DOWN"


def test_a_running_engine_is_seen_as_it_is(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            narrator = Narrator(w.clock, w.meter, lambda: ["a.example"])
            assert narrator.ready().reasons == ["STARTING"]
            assert narrator.health().status == "DOWN"
            narrator.follow(w.engine)
            assert narrator.ready().ready
            assert narrator.health().status == "UP"
            await w.many("a", 20)
            await w.pass_ms(20)
            await w.many("s", 3, target=Stream("news"), tier=Tier.FAST)
            await w.many("p", 2, target=Stream("old"), tier=Tier.FAST)
            await w.engine.ask(Pause("stream:old"))
            await w.end(Rejected("x", "never"))
            narrator.health()
            await w.pass_ms(10_000)
            health = narrator.health(deep=True)
            assert {(a.code, a.subject) for a in health.anomalies} == {
                ("DEAD_LETTERS", ""), ("NO_CONSUMER", "stream:news"), ("PAUSED", "stream:old"),
                ("BREAKER_OPEN", "a.example"),
            }  # fmt: skip
            assert health.status == "DEGRADED"
            vitals = health.vitals
            assert (vitals.due_now, vitals.running, vitals.dead_letters_last_hour) == (5, 0, 20)
            assert vitals.oldest_due_ms == 10_000
            assert vitals.lateness["STANDARD"].p99_ms is not None
            assert vitals.lateness["ULTRA"].p99_ms is None
            assert vitals.disk_free_bytes
            assert vitals.memory_bytes > 1_000_000
            assert vitals.log_sync_p99_ms is not None
            shown = msgspec.json.decode(msgspec.json.encode(health))
            assert shown["vitals"]["lateness"]["FAST"]["boundMs"] == 50
            assert shown["vitals"]["lastSyncAt"].endswith("Z")
            assert [tier["backpressure"] for tier in shown["tiers"]].count("WAITING") == 1
            assert "tiers" not in msgspec.json.decode(msgspec.json.encode(narrator.health()))

    run(main())


def test_a_failed_engine_is_down_and_says_why(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            narrator = Narrator(w.clock, w.meter)
            narrator.follow(w.engine)
            await w.fail()
            health = narrator.health(deep=True)
            assert health.status == "DOWN"
            assert health.narrative.startswith("Down: ") and "'lock' was removed" in health.narrative
            assert [a.code for a in health.anomalies] == ["ENGINE_FAILED"]
            assert narrator.ready().reasons == ["ENGINE_FAILED"]

    run(main())


def test_a_closing_engine_is_not_ready(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            narrator = Narrator(w.clock, w.meter)
            narrator.follow(w.engine)
            await w.engine.drain(100)
            assert narrator.ready().reasons == ["CLOSING"]
            assert narrator.health().status == "DOWN"

    run(main())


def test_health_without_a_token_names_no_receiver():
    """The open route counts receivers; only who may read intents learns their addresses."""
    hosts = ("https://pay.example", "http://10.0.0.7:8080")
    signs = replace(QUIET, breakers=hosts, paused=("callback:pay.example", "task:mail"))
    narrator = Narrator(ManualClock(), Meter())
    told = narrator.judge(signs, named=False)
    text = msgspec.json.encode(told).decode()
    assert "pay.example" not in text and "10.0.0.7" not in text
    details = {each.detail for each in told.anomalies}
    assert "2 receivers of callbacks are paused by the circuit breaker" in details
    assert "1 receiver of callbacks is paused" in details and "task:mail is paused" in details
    named = msgspec.json.encode(narrator.judge(signs)).decode()
    assert all(host in named for host in hosts)


def test_a_handful_is_called_that():
    told = Narrator(ManualClock(), Meter()).judge(late(7.0, count=3))
    assert "7 ms for ULTRA (bound 10 ms, of 3 samples)" in told.narrative
    assert told.vitals.lateness["ULTRA"].samples == 3
    assert "samples" not in Narrator(ManualClock(), Meter()).judge(late(7.0, count=100)).narrative


def test_held_back_work_is_not_on_time(tmp_path):
    """Ten callbacks that the breaker holds back, never called, four seconds after their time."""

    async def main():
        async with world(tmp_path) as w:
            narrator = Narrator(w.clock, w.meter)
            narrator.follow(w.engine)
            await w.many("a", 10, target=Callback("http://x"))
            held = [Settlement(each.id, 1, Snoozed(60_000), waited_ms=-1) for each in w.channel.out]
            w.channel.settle(held)
            await w.pass_ms(4_000)
            told = narrator.health()
            assert not told.narrative.startswith("On time")
            assert "10 held back, the oldest 4 s late" in told.narrative
            assert (told.vitals.held_back, told.vitals.oldest_held_back_ms) == (10, 4_000)
            assert told.vitals.lateness["STANDARD"].p99_ms == 4_000
            await w.pass_ms(5_000)
            assert [each.code for each in narrator.health().anomalies] == ["LATE"]

    run(main())


def test_more_workers_are_not_advised_for_what_waits_for_a_limit(tmp_path):
    async def main():
        async with world(tmp_path) as w:
            narrator = Narrator(w.clock, w.meter)
            narrator.follow(w.engine)
            await w.engine.ask(Pause("task:default"))
            await w.many("a", 3_000)
            await w.many("b", 3_000, target=Task("work", "q"), limits=(Limit("k", concurrency=1),))
            for _ in range(12):
                await w.pass_ms(10_000)
                narrator.health()
            told = narrator.health()
            assert {each.code for each in told.anomalies} == {"PAUSED"} and told.status == "UP"
            assert told.vitals.due_now == 5_999

    run(main())
