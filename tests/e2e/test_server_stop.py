"""SIGTERM under load: acknowledged work is kept, work under way is finished, and the end comes in time."""

from __future__ import annotations

import contextlib
import http.client
import signal
import socket
import threading
from urllib.parse import urlsplit

import pytest

from duetime.clock import SystemClock
from tests.e2e.hook import Hook
from tests.e2e.server_load import Client, Promises
from tests.e2e.test_server_kill import finals
from tests.http.listener import wait_until_ended
from tests.http.server import ServerProcess
from tests.receiver import Hooks

DRAIN_MS = 8_000


def _under_load(server: ServerProcess, hook: Hook, promises: Promises, wanted: int) -> list[threading.Thread]:
    threads = [
        threading.Thread(target=Client(server.url, hook, promises, f"stop-{number}").run)
        for number in range(3)
    ]
    for thread in threads:
        thread.start()
    with promises.news:
        assert promises.news.wait_for(lambda: promises.heard >= wanted, 60)
    return threads


@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
def test_under_load(tmp_path, again):
    promises, clock = Promises(), SystemClock()
    server = ServerProcess(tmp_path / "data", engine__drain_ms=DRAIN_MS, intents__past_tolerance_ms=600_000)
    with Hook() as hook, server:
        threads = _under_load(server, hook, promises, 300)
        began_ms = clock.now_ms()
        server.signal(signal.SIGTERM)
        if again:
            server.signal(signal.SIGTERM)
        code = server.wait(60)
        assert clock.now_ms() - began_ms < DRAIN_MS + 4_000
        assert code == 0 or again
        for thread in threads:
            thread.join(30)
        refused = [text for text in promises.wrong if "503" not in text]
        assert again or not refused, refused[:3]
        promises.wrong.clear()
        delivered = len(hook.arrivals)
        hook.round = 1
        server.start()
        wait_until_ended(server)
        ends = finals(server)
        gone = [id for id in promises.ids.values() if id not in ends]
        assert not gone, f"{len(gone)} were acknowledged and are gone: {gone[:3]}"
        if not again:
            # Everything under way was waited for: nothing that came before comes a second time.
            early = {a.mark for a in hook.arrivals[:delivered] if a.path != "flaky"}
            late = {a.mark for a in hook.arrivals[delivered:]}
            assert not early & late, f"delivered again after a stop: {sorted(early & late)[:5]}"
        assert server.stop() == 0


def test_listeners_that_do_not_read_do_not_hold_up_the_stop(tmp_path):
    """They end when they must, and deliveries under way still have their time."""
    with Hooks() as hooks, ServerProcess(tmp_path / "data", engine__drain_ms=20_000) as server:
        deaf = []
        place = urlsplit(server.url)
        for _ in range(3):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            sock.connect((place.hostname, place.port))
            sock.sendall(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
            deaf.append(sock)
        new = {"delayMs": 3_600_000, "stream": {"name": "nobody"}, "tags": {"t": "x" * 200}}
        for _ in range(20):
            server.ask("POST", "/v1/intents/batch", [new] * 500)
        url = hooks.hold("held")
        held = server.create(delayMs=0, callback={"url": url})["intentId"]
        hooks.take("held")
        began_ms = SystemClock().now_ms()
        server.signal(signal.SIGTERM)
        with contextlib.suppress(OSError, http.client.HTTPException):
            while True:  # until nobody listens any more: answers have had their time
                server.ask("GET", "/health/live")
        hooks.let_go("held")
        assert server.wait(30) == 0
        assert SystemClock().now_ms() - began_ms < 15_000
        server.start()
        shown = server.ask("GET", f"/v1/intents/{held}").json
        assert (shown["status"], shown["delivery"]) == ("ACKED", 1), "it was waited for"
        for sock in deaf:
            sock.close()


def test_idle_and_half_sent_requests_do_not_hold_up_the_stop(tmp_path):
    with ServerProcess(tmp_path / "data", engine__drain_ms=20_000) as server:
        place = urlsplit(server.url)
        socks = [socket.create_connection((place.hostname, place.port)) for _ in range(30)]
        for sock in socks[:10]:
            sock.sendall(b"GET / HT")
        for sock in socks[10:20]:
            sock.sendall(b"POST /v1/intents HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{")
        assert server.ask("GET", "/health/live").status == 200
        began_ms = SystemClock().now_ms()
        assert server.stop() == 0
        assert SystemClock().now_ms() - began_ms < 10_000
        for sock in socks:
            sock.close()
