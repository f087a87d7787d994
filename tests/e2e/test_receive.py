"""`duetime receive`: prints each webhook as it arrives, answers as told, and stops by itself or by Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from tests.e2e.process import environment

WAIT_S = 30


class Receiving:
    """`duetime receive` on a free port, in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "duetime", "receive", "--port", "0", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip
        assert self.process.stderr is not None
        self.words = self.process.stderr.readline()
        found = re.search(r"http://\S+:\d+", self.words)
        assert found, self.words + self.process.stderr.read()
        self.url = found[0]

    def post(self, path: str, body: bytes, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data=body, headers=named)
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def ended(self) -> tuple[str, str, int]:
        out, err = self.process.communicate(timeout=WAIT_S)
        return out, err, self.process.returncode


@pytest.fixture
def receive():
    started: list[Receiving] = []

    def start(*arguments: str) -> Receiving:
        started.append(Receiving(*arguments))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


def test_received_webhooks_are_shown(receive):
    receiving = receive("--count", "2")
    assert (
        receiving.post("/hook?x=1", b'{"payload": 7}', x_duetime_intent_id="a-1", x_duetime_delivery="3")
        == 200
    )
    assert receiving.post("/many", b'[{"payload": 8}]', x_duetime_batch_size="1") == 200
    out, err, code = receiving.ended()
    first, body, second, many = out.splitlines()
    assert first.endswith("POST /hook?x=1  a-1  delivery 3") and body == '  {"payload":7}'
    assert second.endswith("a batch of 1") and many == '  [{"payload":8}]'
    assert (err, code) == ("", 0)


def test_programs_get_a_line_each(receive):
    receiving = receive("--count", "2", "--json")
    receiving.post("/", b'{"payload": 7}', x_duetime_intent_id="a-1")
    receiving.post("/", b"\xff not JSON")
    out, _, _ = receiving.ended()
    first, second = map(json.loads, out.splitlines())
    assert first["intentId"] == "a-1" and first["body"] == {"payload": 7} and first["method"] == "POST"
    assert second["body"] == "\ufffd not JSON" and second["intentId"] is None


def test_a_receiver_can_fail_on_purpose(receive):
    assert receive("--status", "503", "--count", "1").post("/", b"") == 503


def test_ctrl_c_is_an_ordinary_end(receive):
    receiving = receive()
    receiving.process.send_signal(signal.SIGINT)
    assert receiving.ended() == ("", "", 0)


def test_a_taken_port_is_reported_with_a_hint(receive):
    taken = receive().url.rpartition(":")[2]
    second = subprocess.run(
        [sys.executable, "-m", "duetime", "receive", "--port", taken],
        capture_output=True, text=True, env=environment(), timeout=WAIT_S, check=False,
    )  # fmt: skip
    assert second.returncode == 1 and f"Port {taken} of 127.0.0.1 cannot be used" in second.stderr
    assert "hint: Choose another" in second.stderr
