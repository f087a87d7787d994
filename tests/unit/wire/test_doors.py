"""Every field of an intent at every door, or a reason why not.

The declaration is `wire.intent.NewIntent`. A field that is added there appears at most doors by itself; this
table says which doors lack which fields on purpose.
"""

from __future__ import annotations

import pytest

from duetime.cli.args import options as cli
from duetime.client.app import options as app
from duetime.client.http import request_types
from duetime.v1 import intents_pb2 as pb
from duetime.wire import group
from duetime.wire.intent import Intent, NewIntent, PatchIntent, Planned, PlannedIntent, ReviveIntent
from duetime.wire.names import short
from tools import generate_options, generate_proto

FIELDS = NewIntent.__struct_fields__
TARGETS = {"callback", "task", "entity", "stream"}
TIMES = {"execute_at", "delay_ms", "deadline"}
KEYS = {"idempotency_key", "on_duplicate", "collapse_key", "collapse", "unique"}


def _messages(message: type) -> set[str]:
    known = {field.name for field in message.DESCRIPTOR.fields}  # type: ignore[attr-defined]
    return {name for name in FIELDS if name in known or f"{name}_ms" in known}


def _python(names: object) -> set[str]:
    return {name for name in FIELDS if short(name) in names}  # type: ignore[operator]


def _cli(options: tuple[cli.Option, ...]) -> set[str]:
    return {option.field for option in options}


DOORS: dict[str, set[str]] = {
    "HTTP: POST /v1/intents": set(FIELDS),
    "HTTP: answers": set(Intent.__struct_fields__),
    "HTTP: PATCH": set(PatchIntent.__struct_fields__),
    "HTTP: revive": set(ReviveIntent.__struct_fields__),
    "HTTP: intent of a schedule": set(PlannedIntent.__struct_fields__),
    "HTTP: intent of a schedule, shown": set(Planned.__struct_fields__),
    "gRPC: Create": _messages(pb.NewIntent),
    "gRPC: answers": _messages(pb.Intent),
    "gRPC: Patch": _messages(pb.PatchRequest) - {"intent_id"},  # it names the intent
    "gRPC: Revive": _messages(pb.ReviveRequest) - {"intent_id"},
    "Python: options of an App": _python(app.OptionFields.__annotations__),
    "Python: handle.patch": _python(app.Changes.__annotations__),
    "Python: Client.create": set(request_types.NewIntent.__annotations__),
    "Python: Client.patch": set(request_types.Changes.__annotations__),
    "Python: Client.schedules.put": set(request_types.PlannedIntent.__annotations__),
    "command line: schedule": _cli((*cli.NEW, *cli.CALLBACK)) | TARGETS,
    "command line: schedules put": _cli((*cli.PLANNED, *cli.CALLBACK)) | TARGETS,
    "command line: patch": _cli(cli.PATCH),
    "command line: revive": _cli(cli.REVIVE),
}

# Reasons that hold for all fields of a kind.
ACCEPTED = "The terms of an accepted intent do not change; cancel it and create another."
REVIVED = "A revived intent keeps its terms; only its time, payload, webhook and retries may change."
TICK = "A schedule gives its intents their ids and times; each tick is an intent of its own."
CALL = "The call gives it: the function, its arguments, `app.group`."
CALLER = "It comes from the code that schedules an intent; a tick of a schedule has no such caller."
REQUEST = "It says how the request is answered, and is not kept."

PATCHABLE = {"execute_at", "deadline", "expired_action", "redelivery", "tags", "priority", "payload"}
REVIVABLE = {"execute_at", "deadline", "callback", "redelivery", "payload"}
OWN = {
    "intent_id",
    "after",
    "after_on",
    "after_delay_ms",
    "first_argument",
    "group",
    "members",
    *TIMES,
    *KEYS,
}
TICKS = dict.fromkeys(OWN, TICK) | dict.fromkeys(("traceparent", "headers"), CALLER)

REASONS: dict[str, dict[str, str]] = {
    "HTTP: answers": dict.fromkeys(("delay_ms", "on_duplicate"), REQUEST),
    "gRPC: answers": dict.fromkeys(("delay_ms", "on_duplicate"), REQUEST),
    "HTTP: PATCH": dict.fromkeys(set(FIELDS) - PATCHABLE, ACCEPTED),
    "gRPC: Patch": dict.fromkeys(set(FIELDS) - PATCHABLE, ACCEPTED),
    "Python: handle.patch": dict.fromkeys(set(FIELDS) - PATCHABLE, ACCEPTED),
    "Python: Client.patch": dict.fromkeys(set(FIELDS) - PATCHABLE, ACCEPTED),
    "command line: patch": dict.fromkeys(set(FIELDS) - PATCHABLE - {"delay_ms"}, ACCEPTED),
    "HTTP: revive": dict.fromkeys(set(FIELDS) - REVIVABLE, REVIVED),
    "gRPC: Revive": dict.fromkeys(set(FIELDS) - REVIVABLE, REVIVED),
    "command line: revive": dict.fromkeys(set(FIELDS) - REVIVABLE - {"delay_ms"}, REVIVED),
    "HTTP: intent of a schedule": TICKS,
    "HTTP: intent of a schedule, shown": TICKS,
    "Python: Client.schedules.put": TICKS,
    "command line: schedules put": TICKS,
    "Python: options of an App": dict.fromkeys(generate_options.GIVEN, CALL),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_field_is_at_every_door_or_has_a_reason(door):
    missing = set(FIELDS) - DOORS[door]
    reasons = REASONS.get(door, {})
    assert missing == set(reasons), f"{door}: give the missing fields, or the reason why they are missing"


def test_members_of_groups_are_intents_like_any_other():
    fields = group.NewGroup.__annotations__
    assert fields["then"].startswith("Annotated[NewIntent") and fields["members"] == "Some"
    assert group.Some.__origin__ == list[NewIntent]  # type: ignore[attr-defined]


def test_the_keyword_options_are_those_of_the_declarations():
    assert generate_options.APP.read_text() == generate_options.app_options(), "run make options"
    assert generate_options.HTTP.read_text() == generate_options.http_requests(), "run make options"


def test_the_messages_of_grpc_have_every_field():
    text = generate_proto.INTENTS.read_text()
    assert generate_proto.complete(text) == text, "run make proto"


def test_a_new_field_gets_the_next_number_of_its_message():
    text = generate_proto.INTENTS.read_text()
    without = text.replace("  optional string shard_key = 23;\n", "", 1)
    assert without != text
    number = 1 + max(field.number for field in pb.NewIntent.DESCRIPTOR.fields)
    added = f"  optional string shard_key = {number};  // Stored with the intent"
    assert added in generate_proto.complete(without)
