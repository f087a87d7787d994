"""Server-sent events, line by line."""

from __future__ import annotations

from duetime.client.http.sse import Event, Parser


def parsed(parser: Parser, text: str) -> list[Event]:
    lines = [parser.line(line.encode() + b"\n") for line in text.split("\n")]
    return [event for event in lines if event is not None]


def test_events_come_whole():
    text = 'id: 7.1\nevent: transition\ndata: {"a":1}\n\n: still here\n\ndata: one\ndata: two\n\n'
    assert parsed(Parser(), text) == [
        Event("7.1", "transition", '{"a":1}'),
        Event("7.1", "message", "one\ntwo"),
    ]


def test_lines_may_end_like_windows():
    parser = Parser()
    assert [parser.line(b"data: x\r\n"), parser.line(b"\r\n")] == [None, Event("", "message", "x")]


def test_an_id_alone_is_remembered_and_is_no_event():
    parser = Parser()
    assert parsed(parser, "retry: 1000\nid: 5.0\n\n") == []
    assert parser.last_id == "5.0"


def test_a_partial_event_is_dropped_by_a_new_connection():
    parser = Parser("1.0")
    parsed(parser, "id: 2.0\ndata: x\n\nid: 3.0\nevent: transition\ndata: half")
    assert parser.last_id == "2.0"
    parser.restart()
    assert parsed(parser, "data: whole\n\n") == [Event("2.0", "message", "whole")]
