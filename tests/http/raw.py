"""Bytes on a connection of one's own: what clients do that no library would."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.http.server import Reply, ServerProcess

_LENGTH = re.compile(rb"content-length: (\d+)")


@contextmanager
def connected(server: ServerProcess) -> Iterator[socket.socket]:
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=30) as connection:
        yield connection


def request(method: str, path: str, *headers: str, body: bytes = b"", host: str = "localhost") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", *([f"Host: {host}"] if host else []), *headers]
    if body and not any(each.lower().startswith("transfer-encoding") for each in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join((*lines, "", "")).encode("latin-1") + body


def answers(data: bytes) -> tuple[list[Reply], bytes]:
    """The whole answers in these bytes, and what is left."""
    found: list[Reply] = []
    while True:
        head, separator, rest = data.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not separator or length is None or len(rest) < int(length[1]):
            return found, data
        status, *lines = head.decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        assert len(headers) == len(lines), f"a header stands twice: {lines}"
        found.append(Reply(int(status.split()[1]), headers, rest[: int(length[1])]))
        data = rest[int(length[1]) :]


def read(connection: socket.socket, count: int) -> list[Reply]:
    """So many answers, and nothing behind them."""
    data = b""
    while True:
        found, left = answers(data)
        if len(found) >= count:
            assert not left and len(found) == count, (found, left)
            return found
        more = connection.recv(65_536)
        assert more, data
        data += more


def read_to_end(connection: socket.socket) -> list[Reply]:
    """Every answer until the server closes."""
    data = b""
    while more := connection.recv(65_536):
        data += more
    found, left = answers(data)
    assert not left, left
    return found
