"""Deliveries over real connections: each intent to one subscriber, done when it says so, lost never."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from typing import Any

import grpc

from duetime.v1 import deliveries_pb2 as pb
from duetime.v1 import intents_pb2
from tests.e2e.process import ROOT, environment
from tests.grpc.subscriber import Subscriber, calling, create, done, failed
from tests.http.server import ServerProcess

FIXED = intents_pb2.Redelivery(
    max_attempts=5, backoff=intents_pb2.BACKOFF_FIXED, initial_delay_ms=0, max_delay_ms=0, jitter=False
)


async def get(stub, id) -> Any:
    return await stub.Get(intents_pb2.GetRequest(intent_id=id))


async def until(stub, id, *statuses) -> Any:
    """The intent, once it has one of these statuses."""
    request = intents_pb2.WatchIntentsRequest(intent_id=id)
    async with asyncio.timeout(30):
        watch = stub.WatchIntents(request)
        async for _ in watch:
            intent = await get(stub, id)
            if intent.status in statuses:
                watch.cancel()
                return intent
    raise AssertionError("the watch ended")


def test_a_delivery_has_everything_and_its_ack_is_the_end(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub, Subscriber(server.grpc, "all", 1) as subscriber:
            assert subscriber.welcome.consumer.startswith("tester~")
            assert subscriber.welcome.heartbeat_ms == 10_000 and subscriber.welcome.credits_max == 10_000
            now_ms = (await get_time(stub)).created_at_ms
            await create(
                stub, ["all-1"], "all", payload=b'{"a": [1, "\xc3\xa9"]}', tags={"k": "v"},
                traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                deadline_ms=now_ms + 60_000, lease_ms=20_000, timeout_ms=25_000,
                precision_tier=intents_pb2.PRECISION_TIER_FAST,
            )  # fmt: skip
            delivery = await subscriber.one()
            assert delivery.intent_id == "all-1" and delivery.delivery == 1 and delivery.attempt == 1
            assert delivery.precision_tier == intents_pb2.PRECISION_TIER_FAST
            assert json.loads(delivery.payload) == {"a": [1, "é"]} and dict(delivery.tags) == {"k": "v"}
            assert delivery.traceparent.startswith("00-0af7") and delivery.deadline_ms == now_ms + 60_000
            assert delivery.lease_ms == 20_000 and delivery.timeout_ms == 25_000
            assert delivery.stream.name == "all" and 0 <= delivery.late_ms < 5_000
            assert abs(delivery.execute_at_ms - now_ms) < 30_000
            assert (await get(stub, "all-1")).status == intents_pb2.STATUS_DISPATCHING
            results = await subscriber.ack(done(delivery, b'{"ok": true}'))
            assert results.counted == 1 and not results.stale
            intent = await get(stub, "all-1")
            assert intent.status == intents_pb2.STATUS_ACKED and json.loads(intent.result) == {"ok": True}

    asyncio.run(main())


async def get_time(stub):
    new = intents_pb2.NewIntent(delay_ms=3_600_000, stream=intents_pb2.Stream(name="clock"))
    return (await stub.Create(intents_pb2.CreateRequest(intent=new))).intent


def test_a_task_goes_to_a_worker_of_its_queue(server: ServerProcess):
    async def main():
        task = intents_pb2.Task(name="mail.send", queue="mails")
        new = intents_pb2.NewIntent(intent_id="task-1", delay_ms=0, task=task)
        async with calling(server.grpc) as stub, Subscriber(server.grpc, "mails", 1, kind="queue") as worker:
            await stub.Create(intents_pb2.CreateRequest(intent=new))
            delivery = await worker.one()
            assert (delivery.task.name, delivery.task.queue) == ("mail.send", "mails")
            assert (await worker.ack(done(delivery))).counted == 1

    asyncio.run(main())


def test_without_a_subscriber_it_waits(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            await create(stub, ["wait-1"], "wait")
            assert (await until(stub, "wait-1", intents_pb2.STATUS_DUE)).attempts == 0
            async with Subscriber(server.grpc, "wait", 1) as subscriber:
                delivery = await subscriber.one()
                assert delivery.attempt == 1
                await subscriber.ack(done(delivery))
            assert (await get(stub, "wait-1")).status == intents_pb2.STATUS_ACKED

    asyncio.run(main())


def test_without_a_subscriber_it_waits_within_its_deadline(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            now_ms = (await get_time(stub)).created_at_ms
            await create(stub, ["late-1"], "late", deadline_ms=now_ms + 500)
            await until(stub, "late-1", intents_pb2.STATUS_EXPIRED)
            async with Subscriber(server.grpc, "late", 1) as subscriber:
                assert await subscriber.silence()

    asyncio.run(main())


def test_two_subscribers_share_and_nothing_goes_to_both(server: ServerProcess):
    async def main():
        ids = [f"share-{n}" for n in range(400)]
        seen: list[str] = []
        shares = [0, 0]

        async def serve(number: int, subscriber: Subscriber) -> None:
            while len(seen) < len(ids):
                deliveries = (await subscriber.next("deliveries")).deliveries
                seen.extend(each.intent_id for each in deliveries)
                shares[number] += len(deliveries)
                results = await subscriber.ack(*map(done, deliveries), more=len(deliveries))
                assert results.counted == len(deliveries)

        async with (
            calling(server.grpc) as stub,
            Subscriber(server.grpc, "share", 20) as one,
            Subscriber(server.grpc, "share", 20) as two,
        ):
            assert one.welcome.consumer != two.welcome.consumer
            tasks = [asyncio.create_task(serve(n, each)) for n, each in enumerate((one, two))]
            await create(stub, ids, "share")
            async with asyncio.timeout(30):
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            assert sorted(seen) == sorted(ids)
            assert min(shares) > 50, shares
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


def test_never_more_are_out_than_there_are_credits(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub, Subscriber(server.grpc, "few", 3) as subscriber:
            await create(stub, [f"few-{n}" for n in range(10)], "few")
            first = await subscriber.take(3)
            assert await subscriber.silence()
            await subscriber.ack(*map(done, first))  # an outcome gives no credit
            assert await subscriber.silence()
            await subscriber.give(2)
            second = await subscriber.take(2)
            assert await subscriber.silence()
            await subscriber.ack(*map(done, second), more=5)
            rest = await subscriber.take(5)
            assert [each.intent_id for each in first + second + rest] == [f"few-{n}" for n in range(10)]

    asyncio.run(main())


def test_only_the_connection_that_holds_a_delivery_settles_it_and_reports_on_it(server: ServerProcess):
    async def main() -> None:
        async with (
            calling(server.grpc) as stub,
            Subscriber(server.grpc, "held", 1) as holder,
            Subscriber(server.grpc, "held-other", 1) as other,
        ):
            await create(stub, ["held-1"], "held")
            delivery = await holder.one()
            refused = (await other.ack(done(delivery, b'"mine"'))).stale
            assert [each.intent_id for each in refused] == ["held-1"]
            word = pb.ProgressReport.Word(intent_id="held-1", delivery=delivery.delivery, done=1)
            await other.send(progress=pb.ProgressReport(words=[word]))
            await other.ack()
            intent = await stub.Get(intents_pb2.GetRequest(intent_id="held-1"))
            assert intent.status == intents_pb2.STATUS_DISPATCHING
            assert not intent.HasField("progress")
            assert (await holder.ack(done(delivery))).counted == 1

    asyncio.run(main())


def test_deliveries_of_a_subscriber_that_leaves_without_an_ack_are_delivered_again(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            await create(stub, ["left-1", "left-2"], "left", redelivery=FIXED)
            async with Subscriber(server.grpc, "left", 2) as first:
                held = await first.take(2)
                await first.ack(done(held[0]))
            async with Subscriber(server.grpc, "left", 2) as second:
                delivery = await second.one()
                assert (delivery.intent_id, delivery.delivery, delivery.attempt) == ("left-2", 2, 2)
                assert "left without an outcome" in (await get(stub, "left-2")).last_error.message
                await second.ack(done(delivery))

    asyncio.run(main())


def test_a_killed_process_loses_nothing(server: ServerProcess):
    async def main():
        ids = [f"killed-{n}" for n in range(20)]
        async with calling(server.grpc) as stub:
            await create(stub, ids, "killed", redelivery=FIXED)
            child = subprocess.Popen(
                [sys.executable, "-m", "tests.grpc.subscriber", server.grpc, "killed", "20"],
                stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment(),
            )  # fmt: skip
            with child:
                assert child.stdout is not None
                assert await asyncio.to_thread(child.stdout.readline) == "held\n"
                child.send_signal(signal.SIGKILL)
                assert await asyncio.to_thread(child.wait) == -signal.SIGKILL
            async with Subscriber(server.grpc, "killed", 20) as second:
                again = await second.take(20)
                assert sorted(each.intent_id for each in again) == sorted(ids)
                assert {each.delivery for each in again} == {2}
                await second.ack(*map(done, again))
            assert (await get(stub, "killed-0")).status == intents_pb2.STATUS_ACKED

    asyncio.run(main())


def test_auto_ack_is_done_when_it_is_written(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub, Subscriber(server.grpc, "auto", 5, auto=True) as subscriber:
            await create(stub, ["auto-1"], "auto")
            delivery = await subscriber.one()
            await until(stub, "auto-1", intents_pb2.STATUS_ACKED)
            results = await subscriber.ack(done(delivery))
            assert results.counted == 0 and results.stale[0].intent_id == "auto-1"

    asyncio.run(main())


def test_auto_ack_does_not_count_what_is_only_buffered(server: ServerProcess):
    async def main():
        ids = [f"buffer-{n}" for n in range(100)]
        payload = json.dumps("x" * 200_000).encode()
        async with calling(server.grpc) as stub:
            # It says how much it wants and then reads nothing: only a part fits into what is on the way.
            async with Subscriber(server.grpc, "buffer", 100, auto=True):
                for start in range(0, 100, 20):
                    await create(stub, ids[start : start + 20], "buffer", payload=payload, redelivery=FIXED)
                await until(stub, "buffer-99", intents_pb2.STATUS_DISPATCHING)
                acked = 0
                for id in ids:
                    acked += (await get(stub, id)).status == intents_pb2.STATUS_ACKED
                assert acked < 80, "20 MB were not read by anybody"
            async with Subscriber(server.grpc, "buffer", 100, auto=True) as second:
                rest: set[str] = set()
                while len(rest) < 100 - acked - 10:  # what was on the way when it broke off may have counted
                    rest |= {each.intent_id for each in (await second.next("deliveries")).deliveries}
                await until(stub, "buffer-99", intents_pb2.STATUS_ACKED)

    asyncio.run(main())


def test_a_lease_that_runs_out_is_a_retry_and_the_late_ack_is_stale(server: ServerProcess):
    async def main():
        async with (
            calling(server.grpc) as stub,
            Subscriber(server.grpc, "lease", 1) as silent,
        ):
            await create(stub, ["lease-1"], "lease", lease_ms=500, redelivery=FIXED)
            first = await silent.one()
            async with Subscriber(server.grpc, "lease", 1) as other:
                second = await other.one()
                assert (first.delivery, second.delivery, second.attempt) == (1, 2, 2)
                results = await silent.ack(done(first, b'"late"'))
                assert results.counted == 0
                assert [(each.intent_id, each.delivery) for each in results.stale] == [("lease-1", 1)]
                assert (await get(stub, "lease-1")).status == intents_pb2.STATUS_DISPATCHING
                assert (await other.ack(done(second, b'"in time"'))).counted == 1
            assert (await get(stub, "lease-1")).result == b'"in time"'

    asyncio.run(main())


def test_a_silent_subscriber_gets_its_credits_back_at_its_next_heartbeat(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub, Subscriber(server.grpc, "silent", 3) as subscriber:
            await create(stub, ["silent-1"], "silent", lease_ms=300, redelivery=FIXED)
            first = await subscriber.one()
            await until(stub, "silent-1", intents_pb2.STATUS_DUE)  # lost, and not handed to the silent one
            assert (await get(stub, "silent-1")).delivery == 1
            await subscriber.beat()
            aborts = await subscriber.next("aborts")
            assert [(each.intent_id, each.reason) for each in aborts.aborts] == [("silent-1", "lease")]
            again = await subscriber.one()
            assert (first.delivery, again.delivery) == (1, 2)
            await subscriber.ack(done(again))
            await create(stub, ["silent-2", "silent-3"], "silent")
            assert (await subscriber.one()).intent_id == "silent-2"  # three credits in all: this is the last
            assert await subscriber.silence()

    asyncio.run(main())


def test_heartbeats_keep_a_lease(server: ServerProcess):
    """For so long that one of twice the length has run out, of somebody who is silent."""

    async def main():
        async with (
            calling(server.grpc) as stub,
            Subscriber(server.grpc, "beats", 1) as subscriber,
            Subscriber(server.grpc, "mute", 1) as silent,
        ):
            await create(stub, ["beats-1"], "beats", lease_ms=600)
            delivery = await subscriber.one()
            await create(stub, ["mute-1"], "mute", lease_ms=1_200)
            await silent.one()
            lost = asyncio.ensure_future(
                until(stub, "mute-1", intents_pb2.STATUS_SCHEDULED, intents_pb2.STATUS_DUE)
            )
            while not lost.done():
                await subscriber.beat()
                await asyncio.wait([lost], timeout=0.1)
            assert (await subscriber.ack(done(delivery))).counted == 1

    asyncio.run(main())


def test_signs_of_life_do_not_make_up_for_an_outcome(server: ServerProcess):
    """A stream's intent has its timeout, however lively its subscriber is."""

    async def main():
        async with calling(server.grpc) as stub, Subscriber(server.grpc, "slow", 1) as subscriber:
            await create(stub, ["slow-1"], "slow", timeout_ms=400, redelivery=FIXED)
            first = await subscriber.one()
            await subscriber.beat()
            aborts = await subscriber.next("aborts")
            assert [(each.intent_id, each.reason) for each in aborts.aborts] == [("slow-1", "timeout")]
            await subscriber.give(1)
            second = await subscriber.one()
            assert second.delivery == 2
            assert "no outcome within 400 ms" in (await get(stub, "slow-1")).last_error.message
            results = await subscriber.ack(done(first), done(second))
            assert results.counted == 1 and len(results.stale) == 1

    asyncio.run(main())


def test_every_outcome_has_its_effect(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub, Subscriber(server.grpc, "kinds", 10) as subscriber:
            await create(stub, [f"kinds-{n}" for n in range(6)], "kinds", redelivery=FIXED)
            held = {each.intent_id: each for each in await subscriber.take(6)}
            named = [held[f"kinds-{n}"] for n in range(6)]
            base = [pb.Ack(intent_id=each.intent_id, delivery=each.delivery) for each in named]
            base[2].snoozed.delay_ms = 3_600_000
            base[3].rejected.CopyFrom(pb.Rejected(kind="bad", message="it is wrong"))
            base[4].done.result = b"{not json"
            results = await subscriber.ack(
                failed(named[0], kind="boom", message="again", retry_after_ms=3_600_000),
                failed(named[1], kind="boom", message="again", delay_ms=0),
                base[2], base[3], base[4], failed(named[5], message="x" * 100_000, delay_ms=3_600_000),
            )  # fmt: skip
            assert results.counted == 6
            later = await get(stub, "kinds-0")
            assert later.status == intents_pb2.STATUS_SCHEDULED and later.last_error.kind == "boom"
            # Its stamp and ours may be of two milliseconds.
            assert later.next_attempt_at_ms - later.updated_at_ms >= 3_599_999
            again = await subscriber.one()
            assert again.intent_id == "kinds-1" and again.attempt == 2
            snoozed = await get(stub, "kinds-2")
            assert snoozed.status == intents_pb2.STATUS_SCHEDULED and snoozed.attempts == 0
            rejected = await get(stub, "kinds-3")
            assert rejected.status == intents_pb2.STATUS_DEAD_LETTERED
            assert (rejected.last_error.kind, rejected.last_error.message) == ("bad", "it is wrong")
            odd = await get(stub, "kinds-4")
            assert odd.status == intents_pb2.STATUS_DEAD_LETTERED and "not JSON" in odd.last_error.message
            assert len((await get(stub, "kinds-5")).last_error.message) == 2_000

    asyncio.run(main())


def test_a_cancelled_intent_is_aborted(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub, Subscriber(server.grpc, "stop", 1) as subscriber:
            await create(stub, ["stop-1"], "stop")
            delivery = await subscriber.one()
            await stub.Cancel(intents_pb2.CancelRequest(intent_id="stop-1"))
            aborts = await subscriber.next("aborts")
            assert [(each.intent_id, each.delivery, each.reason) for each in aborts.aborts] == [
                ("stop-1", 1, "cancelled")
            ]
            assert (await subscriber.ack(done(delivery))).counted == 0

    asyncio.run(main())


def test_draining_hands_out_nothing_more_and_says_when_all_is_answered(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub, Subscriber(server.grpc, "drain", 5) as subscriber:
            await create(stub, ["drain-1", "drain-2"], "drain")
            held = await subscriber.take(2)
            await subscriber.send(drain=pb.Drain())
            assert await subscriber.silence()
            await create(stub, ["drain-3"], "drain")
            await subscriber.ack(done(held[0]))
            assert await subscriber.silence()
            assert (await subscriber.ack(done(held[1]))).counted == 1
            await subscriber.next("drained")
            assert (await get(stub, "drain-3")).attempts == 0
            async with Subscriber(server.grpc, "drain", 5) as other:
                assert (await other.one()).intent_id == "drain-3"

    asyncio.run(main())


def test_ending_ones_side_is_leaving(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            await create(stub, ["bye-1"], "bye", redelivery=FIXED)
            async with Subscriber(server.grpc, "bye", 1) as first:
                await first.one()
                await first.end_writing()
                assert await first.end() is grpc.StatusCode.OK
            async with Subscriber(server.grpc, "bye", 1) as second:
                assert (await second.one()).delivery == 2

    asyncio.run(main())


def test_a_cut_connection_is_leaving(server: ServerProcess):
    async def main():
        async with calling(server.grpc) as stub:
            await create(stub, ["cut-1"], "cut", redelivery=FIXED)
            first = Subscriber(server.grpc, "cut", 1)
            await first.__aenter__()
            await first.one()
            await first.cut()
            async with Subscriber(server.grpc, "cut", 1) as second:
                assert (await second.one()).delivery == 2

    asyncio.run(main())
