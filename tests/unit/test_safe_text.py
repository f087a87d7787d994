"""Text from others keeps to its line, on terminals and in logs."""

from __future__ import annotations

import io
import json
import logging
import sys
import unicodedata

import msgspec
import pytest

from duetime.safe_text import LineFormatter, log_to_stderr, plain, plain_json

C0 = [chr(code) for code in range(0x20) if chr(code) != "\t"]
C1 = [chr(code) for code in range(0x7F, 0xA0)]
DIRECTIONS = [*"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"]
SEPARATORS = [*"\u2028\u2029"]
SURROGATES = ["\ud800", "\udc80", "\udfff"]
FORGED = "x\n2030-01-01 00:00:00,000 INFO duetime: all is well\r\x1b[2Jy\u202e"


@pytest.mark.parametrize(
    "sign", [*C0, *C1, *DIRECTIONS, *SEPARATORS, *SURROGATES], ids=lambda sign: f"{ord(sign):04x}"
)
def test_terminal_control_characters_are_escaped(sign):
    shown = plain(f"a{sign}b")
    assert shown.isascii() and shown.isprintable() and shown[:2] == "a\\" and shown[-1] == "b"


def test_no_character_of_a_direction_control_is_missed():
    controls = ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
    for code in range(sys.maxunicode + 1):
        if unicodedata.bidirectional(chr(code)) in controls:
            assert plain(chr(code)) != chr(code), f"{code:04x}"


def test_usual_text_is_as_it_was():
    text = "Grüße,\t世界 \U0001f600 \\n שלום مرحبا [red]x[/red]"
    assert plain(text) == text


def test_lines_are_joined():
    assert plain("a\nb\r\nc") == "a\\nb\\r\\nc"


def test_json_says_the_same():
    value = {"".join([*C0, *C1]): "".join([*DIRECTIONS, *SEPARATORS, "ü世\U0001f600"])}
    shown = plain_json(msgspec.json.encode(value))
    assert json.loads(shown) == value
    assert plain(shown) == shown


def formatted(log, *, before: logging.Formatter | None = None) -> str:
    stream = io.StringIO()
    logger = logging.Logger("test")
    for formatter, to in ((before, io.StringIO()), (LineFormatter(), stream)):
        if formatter is not None:
            handler = logging.StreamHandler(to)
            handler.setFormatter(formatter)
            logger.addHandler(handler)
    log(logger)
    return stream.getvalue()


def test_a_record_is_one_line():
    shown = formatted(lambda logger: logger.warning("Intent %s failed.", FORGED))
    assert shown.count("\n") == 1 and shown.endswith(".\n")
    assert plain(shown[:-1]) == shown[:-1]


@pytest.mark.parametrize("before", [None, logging.Formatter()], ids=["alone", "after another handler"])
def test_lines_of_a_traceback_do_not_look_like_records(before):
    def log(logger: logging.Logger) -> None:
        try:
            raise ValueError(FORGED)
        except ValueError:
            logger.exception("It failed.", stack_info=True)

    first, *others = formatted(log, before=before)[:-1].split("\n")
    assert first.endswith("ERROR test: It failed.")
    assert others[0] == "    Traceback (most recent call last):"
    assert "    Stack (most recent call last):" in others
    assert all(line.startswith("    ") and plain(line) == line for line in others)
    assert any("all is well" in line for line in others)


def test_a_traceback_that_came_as_text_is_shown():
    def log(logger: logging.Logger) -> None:
        record = logger.makeRecord("test", logging.ERROR, __file__, 1, "It failed.", (), None)
        record.exc_text = FORGED
        logger.handle(record)

    first, *others = formatted(log)[:-1].split("\n")
    assert first.endswith("ERROR test: It failed.")
    forged = "2030-01-01 00:00:00,000 INFO duetime: all is well\\r\\x1b[2Jy\\u202e"
    assert others == ["    x", f"    {forged}"]


def test_a_process_that_has_a_logger_keeps_it(monkeypatch):
    root = logging.RootLogger(logging.WARNING)
    monkeypatch.setattr(logging, "root", root)
    log_to_stderr()
    (handler,) = root.handlers
    assert isinstance(handler.formatter, LineFormatter)
    log_to_stderr()
    assert root.handlers == [handler]
