"""Answers: servers and clients share one declaration, and the OpenAPI document follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from duetime import wire
from duetime.api.http.openapi import document
from duetime.wire.health import Health
from duetime.wire.shapes import Out, written, written_or_none
from tests.unit.api.http.test_openapi import all_routes

INSIGHT = {"Health", "Readiness", "Chronoscope", "Timeline", "Predictions", "Autoscale", "Life", "Past"}


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    found: dict[str, Any] = document(all_routes())["components"]["schemas"]
    return found


def answers() -> Iterator[type[Struct]]:
    """Without the parts of requests that have the fields of an answer (`CallbackIn`)."""
    for path in sorted(Path(wire.__path__[0]).glob("*.py")):
        module = import_module(f"duetime.wire.{path.stem}")
        own = [each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__]
        for kind in own:
            if isinstance(kind, type) and issubclass(kind, Out) and not is_sent(kind):
                yield kind


def is_sent(kind: type[Struct]) -> bool:
    return kind.__struct_config__.forbid_unknown_fields


def test_every_answer_is_declared_in_wire(schemas):
    declared = {kind.__name__ for kind in answers()}
    objects = {name for name, schema in schemas.items() if schema.get("type") == "object"}
    sent = {name for name in objects if schemas[name].get("additionalProperties") is False}
    assert objects - sent <= declared
    assert objects >= INSIGHT


def test_a_server_sends_every_field_of_an_answer(schemas):
    for kind in answers():
        schema = schemas.get(kind.__name__)
        if schema is not None and not kind.__struct_config__.omit_defaults:
            assert schema["required"] == list(schema["properties"]), kind


def test_only_deep_health_has_tiers(schemas):
    schema = schemas[Health.__name__]
    assert set(schema["properties"]) - set(schema["required"]) == {"tiers"}


@pytest.mark.parametrize("name", ["at", "since", "end", "writtenAt", "trainedAt", "lastSyncAt"])
def test_a_time_is_declared_as_a_time(schemas, name):
    shown = [schemas[kind.__name__]["properties"] for kind in answers() if kind.__name__ in schemas]
    times = [fields[name] for fields in shown if name in fields]
    assert times
    for time in times:
        assert "date-time" in {form.get("format") for form in (time, *time.get("anyOf", ()))}, time


def test_times_are_written_as_text():
    assert msgspec.json.encode(written(1_000)) == b'"1970-01-01T00:00:01.000Z"'
    assert written_or_none(None) is None and written_or_none(0) is None
