"""Names of fields: the same as msgspec writes them."""

from __future__ import annotations

import msgspec
import pytest

from duetime.wire.intent import Intent
from duetime.wire.names import camel


@pytest.mark.parametrize(
    ("name", "expected"), [("id", "id"), ("execute_at", "executeAt"), ("p99_late_ms", "p99LateMs")]
)
def test_camel(name, expected):
    assert camel(name) == expected


def test_names_equal_those_of_msgspec():
    fields = msgspec.structs.fields(Intent)
    assert {camel(field.name) for field in fields} == {field.encode_name for field in fields}
