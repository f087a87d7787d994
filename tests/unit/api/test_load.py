"""Requests under way, and the bytes they hold: limits in all and for one token or address."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from duetime.api.access.admission import Admission
from duetime.api.access.auth import Gate, Grant, Role
from duetime.api.access.byte_budget import Budget
from duetime.api.http.endpoint import Call, Endpoint, Load, check_type
from duetime.api.http.exchange import Answer, Exchange, Head, RequestTurn
from duetime.errors import NotJsonType

MB = 1024 * 1024


def test_a_budget_is_for_all_and_for_each():
    budget = Budget(10, 6)
    assert budget.take("a", 6) and not budget.take("a", 1)
    assert budget.take("b", 4) and not budget.take("c", 1), "all is taken"
    budget.give("a", 2)
    assert budget.take("c", 2) and budget.held == 10
    for name, count in (("a", 4), ("b", 4), ("c", 2)):
        budget.give(name, count)
    assert budget.held == 0 and budget._of == {}


def test_a_ticket_takes_from_its_addresses_budget():
    door = Admission("http", 10, held=Budget(10, 6))
    one, two, other = (door.admit(address) for address in ("10.0.0.1", "10.0.0.1", "10.0.0.2"))
    assert one is not None and two is not None and other is not None
    assert one.take(6) and not two.take(1) and other.take(4)
    one.give(6)
    assert two.take(1)


class Asked:
    """A request to an endpoint, of which the test decides what comes and when."""

    def __init__(self, endpoint: Endpoint, *headers: tuple[bytes, bytes]) -> None:
        self.carrier = MemoryCarrier()
        self._exchange = Exchange(Head("POST", "/x", b"", list(headers)), self.carrier)
        self.task = asyncio.ensure_future(endpoint(self._exchange, {}))

    def comes(self, body: bytes, more: bool = False) -> None:
        self._exchange.feed(body)
        if not more:
            self._exchange.complete()

    async def answer(self) -> tuple[int, bytes]:
        async with asyncio.timeout(20):
            await self.task
        return self.carrier.status, self.carrier.sent.partition(b"\r\n\r\n")[2]


class MemoryCarrier:
    """Keeps what an exchange writes. Unless `read` is set, the client reads nothing after the first write."""

    def __init__(self, read: asyncio.Event | None = None) -> None:
        self.sent = b""
        self._read = read

    @property
    def status(self) -> int:
        return int(self.sent.split()[1])

    def write(self, data: bytes) -> None:
        self.sent += data

    async def drain(self) -> None:
        if self.sent and self._read is not None:
            await self._read.wait()

    def resume_reading(self) -> None: ...

    def finished(self, turn: RequestTurn) -> None: ...


def token(name: str) -> tuple[bytes, bytes]:
    return b"x-duetime-token", name.encode()


def rig(requests_max: int = 4, bytes_max: int = 8 * MB, role: Role | None = Role.submit) -> Any:
    begun = asyncio.Event()
    go_on = asyncio.Event()

    async def handler(call: Call) -> Answer:
        begun.set()
        await go_on.wait()
        return Answer(b"%d" % len(call.body))

    load = Load(requests_max, bytes_max)
    gate = Gate(lambda: [Grant("a", frozenset({Role.submit})), Grant("b", frozenset({Role.submit}))], str)
    return Endpoint(handler, role, gate, load, bulk=True), load, begun, go_on


def test_a_head_without_a_body_is_not_under_way():
    async def main() -> None:
        endpoint, load, _, go_on = rig(requests_max=4)
        go_on.set()
        heads = [Asked(endpoint, token("a")) for _ in range(100)]
        other = Asked(endpoint, token("b"))
        other.comes(b"{}")
        assert await other.answer() == (200, b"2")
        assert load.under_way == 0
        for head in heads:
            head.task.cancel()
        await asyncio.gather(*(head.task for head in heads), return_exceptions=True)
        assert load.held.held == 0

    asyncio.run(main())


def test_requests_of_one_token_leave_room_for_others():
    async def main() -> None:
        endpoint, load, begun, go_on = rig(requests_max=4)
        mine = [Asked(endpoint, token("a")) for _ in range(6)]
        for each in mine:
            each.comes(b"")
        other = Asked(endpoint, token("b"))
        other.comes(b"{}")
        async with asyncio.timeout(20):
            await begun.wait()
        go_on.set()
        assert sorted([(await each.answer())[0] for each in mine]) == [200] * 3 + [429] * 3
        assert (await other.answer())[0] == 200
        assert load.under_way == 0

    asyncio.run(main())


def test_bodies_that_do_not_end_are_bounded_by_token():
    async def main() -> None:
        endpoint, load, _, go_on = rig()
        go_on.set()
        asked = [Asked(endpoint, token("a")) for _ in range(40)]
        for each in asked:
            each.comes(b"x" * 7 * MB, more=True)
        await asyncio.wait([each.task for each in asked], timeout=20, return_when=asyncio.FIRST_COMPLETED)
        assert load.held.held <= load.held.share
        other = Asked(endpoint, token("b"))
        other.comes(b"x" * MB)
        assert (await other.answer())[0] == 200, "another token has its own share"
        refused = [each for each in asked if each.task.done()]
        assert len(refused) == 40 - load.held.share // (7 * MB)
        for each in refused:
            assert (await each.answer())[0] == 429
        for each in asked:
            each.comes(b"")
        await asyncio.gather(*(each.task for each in asked))
        assert load.held.held == 0

    asyncio.run(main())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 200),
        ([(b"content-length", b"0")], 200),
        ([(b"content-length", b"000")], 200),
        ([(b"content-length", b"10")], 413),
        ([(b"transfer-encoding", b"chunked")], 413),
    ],
)
def test_open_routes_take_no_bodies(headers, status):
    async def main() -> None:
        endpoint, _, _, go_on = rig(role=None)
        go_on.set()
        found, body = await Asked(endpoint, *headers).answer()  # nothing is read
        assert found == status
        if status != 200:
            assert msgspec.json.decode(body)["errorCode"] == 41301

    asyncio.run(main())


BODY = (b"content-length", b"2")


@pytest.mark.parametrize(
    ("kind", "ndjson", "good"),
    [
        ("application/json", False, True),
        ("Application/JSON; charset=utf-8", False, True),
        ("application/merge-patch+json", False, True),
        ("application/x-ndjson", True, True),
        ("application/jsonl", True, True),
        ("application/x-ndjson", False, False),
        ("text/plain", True, False),
        ("text/plain;charset=UTF-8", False, False),
        ("application/x-www-form-urlencoded", False, False),
        ("multipart/form-data; boundary=x", False, False),
        ("text/json", False, False),
        ("text/plain; application/json", False, False),
        ("", False, False),
    ],
)
def test_bodies_are_json(kind, ndjson, good):
    said = (b"content-type", kind.encode())
    if good:
        check_type([said, BODY], ndjson=ndjson)
    else:
        with pytest.raises(NotJsonType) as error:
            check_type([said, BODY], ndjson=ndjson)
        assert "content-type: application/json" in error.value.hint
        with pytest.raises(NotJsonType):
            check_type([(b"content-type", b"application/json"), said, BODY], ndjson=ndjson)
    check_type([said], ndjson=ndjson)  # there is no body
    check_type([BODY], ndjson=ndjson)  # nothing is said of it


def test_unread_responses_are_bounded_by_token():
    async def main() -> None:
        load = Load(1_000, 8 * MB)
        load.unread = Budget(16 * MB, 8 * MB)
        read = asyncio.Event()
        asked: list[MemoryCarrier] = []

        async def handler(call: Call) -> Answer:
            return Answer(b"x" * 3 * MB)

        gate = Gate(lambda: [Grant("a", frozenset({Role.read})), Grant("b", frozenset({Role.read}))], str)
        endpoint = Endpoint(handler, Role.read, gate, load)

        def ask(name: str, method: str = "GET") -> asyncio.Task[None]:
            carrier = MemoryCarrier(read)
            exchange = Exchange(Head(method, "/x", b"", [token(name)]), carrier)
            exchange.complete()
            asked.append(carrier)
            return asyncio.create_task(endpoint(exchange, {}))

        def statuses() -> list[int]:
            found = [carrier.status for carrier in asked]
            answered.extend(asked)
            asked.clear()
            return found

        answered: list[MemoryCarrier] = []

        waiting = [ask("a"), ask("a")]
        await turns()
        assert statuses() == [200, 200]
        await ask("a")
        assert statuses() == [429]
        waiting.append(ask("b"))
        await turns()
        assert statuses() == [200], "one that does not read is in nobody else's way"
        waiting.append(ask("a", "POST"))
        await turns()
        assert statuses() == [200], "what was done is told"
        await ask("a", "POST")
        assert statuses() == [429], "and no more is done"
        read.set()
        await asyncio.gather(*waiting)
        assert sum(len(carrier.sent) > 3 * MB for carrier in answered) == 4
        assert load.unread.held == 0 and load.unread._of == {}

    asyncio.run(main())


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)  # tidy: turns of the loop


def test_a_request_that_is_not_about_many_is_smaller():
    async def main() -> None:
        load = Load(10, 8 * MB)

        async def handler(call: Call) -> Answer:
            return Answer(b"%d" % len(call.body))

        for bulk, status in ((False, 413), (True, 200)):
            endpoint = Endpoint(handler, Role.submit, Gate(list, str), load, bulk=bulk)
            for headers in ([], [(b"content-length", b"%d" % (MB + 1))]):
                asked = Asked(endpoint, *headers)
                asked.comes(b" " * (MB + 1))
                assert (await asked.answer())[0] == status
        assert load.held.held == 0

    asyncio.run(main())
