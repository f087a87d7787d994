"""The edges of HTTP: every byte belongs to one request, and every whole request gets its answer."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator

import pytest

from duetime.api.access import tokens
from tests.http.checks import problem
from tests.http.raw import connected, read, read_to_end, request
from tests.http.server import ServerProcess

NEW = {"delayMs": 3_600_000, "stream": {"name": "nobody"}}
UPGRADE = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk")


def new(**more: object) -> bytes:
    return json.dumps({**NEW, **more}).encode()


# Upgrades.


@pytest.mark.parametrize("cuts", [[], [5], [100], [250], [40, 80, 150, 200, 260]])
def test_a_body_behind_an_upgrade_belongs_to_its_request(server, fresh, cuts):
    hidden, asked = fresh(), fresh()
    smuggled = request("POST", "/v1/intents", body=new(intentId=hidden))
    body = new(intentId=asked, payload=smuggled.decode())
    sent = request("POST", "/v1/intents", *UPGRADE, "Content-Type: application/json", body=body)
    with connected(server) as connection:
        for begin, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
            connection.sendall(sent[begin:end])
            server.ask("GET", "/health/live")  # by now it has read what came
        (answer,) = read(connection, 1)
        assert answer.status == 201 and answer.json["intentId"] == asked
        connection.sendall(request("GET", f"/v1/intents/{hidden}"))
        assert read(connection, 1)[0].status == 404, "and the body was no request"


@pytest.mark.parametrize("upgrade", ["h2c", "websocket", "TLS/1.0", "anything, else"])
def test_upgrades_that_are_not_known_are_ignored(server, fresh, upgrade):
    headers = ("Connection: keep-alive, Upgrade", f"Upgrade: {upgrade}")
    chunked = ("Transfer-Encoding: chunked", *headers)
    body = new(intentId=fresh())
    with connected(server) as connection:
        connection.sendall(
            request("GET", "/health/live", *headers)
            + request("POST", "/v1/intents", *headers, body=body)
            + request("POST", "/v1/intents", *chunked, body=b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
            + request("GET", "/health/live")
        )
        assert [answer.status for answer in read(connection, 4)] == [200, 201, 409, 200]


def test_connect_is_for_proxies(server):
    with connected(server) as connection:
        connection.sendall(request("CONNECT", "example.com:80") + request("GET", "/health/live"))
        (answer,) = read_to_end(connection)
        problem(answer, 40005)


JAVA = """
import java.net.URI;
import java.net.http.*;

class Post {
    public static void main(String[] given) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(given[0]))
            .header("content-type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(given[1])).build();
        var client = HttpClient.newHttpClient();
        for (int n = 0; n < 2; n++) {
            var answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(answer.statusCode());
        }
    }
}
"""


@pytest.mark.service
def test_javas_own_client_can_post(server, java, tmp_path):
    """It asks for HTTP/2 on its first request unless told otherwise."""
    (tmp_path / "Post.java").write_text(JAVA)
    done = subprocess.run(
        [java, "-Xshare:auto", "-XX:TieredStopAtLevel=1", tmp_path / "Post.java", f"{server.url}/v1/intents",
         json.dumps(NEW)], capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["201", "201"], done.stderr


# Heads.


@pytest.mark.parametrize(
    "hosts", [[], ["Host: localhost", "Host: localhost"], ["Host: localhost", "Host: x"]]
)
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/intents"), ("GET", "/v1/intents"), ("GET", "/health"), ("GET", "/x")]
)
def test_one_host_and_one_only(server, hosts, method, path):
    body = new() if method == "POST" else b""
    with connected(server) as connection:
        connection.sendall(request(method, path, *hosts, body=body, host=""))
        problem(read(connection, 1)[0], 40005)


def test_http_1_0_needs_no_host(server):
    with connected(server) as connection:
        connection.sendall(b"GET /health/live HTTP/1.0\r\n\r\n")
        (answer,) = read_to_end(connection)
        assert answer.status == 200


@pytest.fixture(scope="module")
def guarded(tmp_path_factory) -> Iterator[tuple[ServerProcess, str]]:
    folder = tmp_path_factory.mktemp("guarded") / "data"
    token = tokens.new(folder, "admin", "tests")
    with ServerProcess(folder) as server:
        yield server, token


@pytest.mark.parametrize("name", ["X-Duetime-Token: {}", "Authorization: Bearer {}"])
@pytest.mark.parametrize("path", ["/v1/intents", "/v1/intents/batch"])
def test_a_trailer_is_no_token(guarded, name, path):
    server, token = guarded
    body = new() if path == "/v1/intents" else b"[%b]" % new()
    field = name.format(token).encode()
    chunks = b"%x\r\n%b\r\n0\r\n" % (len(body), body)
    with connected(server) as connection:
        connection.sendall(
            request("POST", path, "Transfer-Encoding: chunked", body=chunks + field + b"\r\n\r\n")
            + request("POST", path, "Transfer-Encoding: chunked", field.decode(), body=chunks + b"\r\n")
        )
        stranger, known = read(connection, 2)
        problem(stranger, 40101)
        assert known.status in (200, 201)


# Answers that must not be lost.


@pytest.mark.parametrize("path", ["/v1/intents", "/v1/intents/batch"])
def test_a_client_that_closes_its_writing_side_gets_its_response(server, fresh, path):
    body = new(intentId=fresh(), ackLevel="DURABLE")
    with connected(server) as connection:
        connection.sendall(request("POST", path, body=body if path == "/v1/intents" else b"[%b]" % body) * 2)
        connection.shutdown(socket.SHUT_WR)
        answers = read_to_end(connection)
    assert [answer.status for answer in answers] == ([201, 409] if path == "/v1/intents" else [200, 200])


def test_a_half_closed_client_gets_the_responses_to_its_whole_requests(server):
    body = new()
    half = request("POST", "/v1/intents", "Content-Length: 500", body=b"")
    with connected(server) as connection:
        connection.sendall(request("POST", "/v1/intents", body=body) + half + b"{")
        connection.shutdown(socket.SHUT_WR)
        assert [answer.status for answer in read_to_end(connection)] == [201]


def test_a_listener_that_closes_its_side_is_gone(server):
    with connected(server) as connection:
        connection.sendall(request("GET", "/v1/events"))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65_536):
            pass


@pytest.mark.parametrize("path", ["/v1/intents", "/v1/intents/batch"])
@pytest.mark.parametrize(
    "garbage",
    [b"\x16\x03\x01 garbage", b"POST nothing\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"],
)
def test_garbage_behind_a_good_request_does_not_lose_its_answer(server, path, garbage):
    body = new(ackLevel="DURABLE") if path == "/v1/intents" else b"[%b]" % new(ackLevel="DURABLE")
    with connected(server) as connection:
        connection.sendall(request("POST", path, body=body) * 2 + garbage)
        *good, last = read_to_end(connection)
    assert [answer.status for answer in good] == [201 if path == "/v1/intents" else 200] * 2
    problem(last, 40005)


def test_garbage_in_a_body(server, fresh):
    good = request("POST", "/v1/intents", body=new(intentId=fresh()))
    broken = request("POST", "/v1/intents", "Transfer-Encoding: chunked", body=b"5\r\n{}\r\nzz\r\n")
    with connected(server) as connection:
        connection.sendall(good + broken)
        first, last = read_to_end(connection)
    assert first.status == 201
    problem(last, 40005)


def test_garbage_is_not_logged(tmp_path):
    with ServerProcess(tmp_path / "data") as server:
        for _ in range(20):
            with connected(server) as connection:
                connection.sendall(b"garbage\r\n\r\n")
                problem(read_to_end(connection)[0], 40005)
        assert server.stop() == 0
        assert not [line for line in server.words if "nvalid" in line], "strangers do not fill the log"


# Methods.


def test_allow_says_what_is_taken(server):
    document = server.ask("GET", "/openapi.json").json
    for path in document["paths"]:
        place = path.replace("{", "").replace("}", "")
        with connected(server) as connection:
            connection.sendall(request("PURGE", place))
            (answer,) = read(connection, 1)
        problem(answer, 40501)
        (allow,) = [value for name, value in answer.headers.items() if name.lower() == "allow"]
        allowed = set(allow.split(", "))
        assert "GET" not in allowed or "HEAD" in allowed
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            if method == "GET" and "events" in path:
                continue  # it does not end
            with connected(server) as connection:
                connection.sendall(request(method, place, "Connection: close"))
                taken = int(connection.recv(65_536).split()[1]) != 405
            assert taken == (method in allowed), (method, path, allowed)
