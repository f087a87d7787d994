from duetime.v1 import intents_pb2 as _intents_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AckMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACK_MODE_UNSPECIFIED: _ClassVar[AckMode]
    ACK_MODE_AUTO: _ClassVar[AckMode]
    ACK_MODE_MANUAL: _ClassVar[AckMode]
ACK_MODE_UNSPECIFIED: AckMode
ACK_MODE_AUTO: AckMode
ACK_MODE_MANUAL: AckMode

class Source(_message.Message):
    __slots__ = ("stream", "queue", "entity")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    stream: str
    queue: str
    entity: str
    def __init__(self, stream: _Optional[str] = ..., queue: _Optional[str] = ..., entity: _Optional[str] = ...) -> None: ...

class Credit(_message.Message):
    __slots__ = ("source", "credits")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    source: Source
    credits: int
    def __init__(self, source: _Optional[_Union[Source, _Mapping]] = ..., credits: _Optional[int] = ...) -> None: ...

class Function(_message.Message):
    __slots__ = ("name", "queue", "entity", "signature", "schema")
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    name: str
    queue: str
    entity: str
    signature: str
    schema: str
    def __init__(self, name: _Optional[str] = ..., queue: _Optional[str] = ..., entity: _Optional[str] = ..., signature: _Optional[str] = ..., schema: _Optional[str] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("consumer", "ack_mode", "credits", "functions", "earlier", "holding")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    ACK_MODE_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    EARLIER_FIELD_NUMBER: _ClassVar[int]
    HOLDING_FIELD_NUMBER: _ClassVar[int]
    consumer: str
    ack_mode: AckMode
    credits: _containers.RepeatedCompositeFieldContainer[Credit]
    functions: _containers.RepeatedCompositeFieldContainer[Function]
    earlier: _containers.RepeatedScalarFieldContainer[str]
    holding: Holding
    def __init__(self, consumer: _Optional[str] = ..., ack_mode: _Optional[_Union[AckMode, str]] = ..., credits: _Optional[_Iterable[_Union[Credit, _Mapping]]] = ..., functions: _Optional[_Iterable[_Union[Function, _Mapping]]] = ..., earlier: _Optional[_Iterable[str]] = ..., holding: _Optional[_Union[Holding, _Mapping]] = ...) -> None: ...

class Holding(_message.Message):
    __slots__ = ("held",)
    class Held(_message.Message):
        __slots__ = ("intent_id", "delivery")
        INTENT_ID_FIELD_NUMBER: _ClassVar[int]
        DELIVERY_FIELD_NUMBER: _ClassVar[int]
        intent_id: str
        delivery: int
        def __init__(self, intent_id: _Optional[str] = ..., delivery: _Optional[int] = ...) -> None: ...
    HELD_FIELD_NUMBER: _ClassVar[int]
    held: _containers.RepeatedCompositeFieldContainer[Holding.Held]
    def __init__(self, held: _Optional[_Iterable[_Union[Holding.Held, _Mapping]]] = ...) -> None: ...

class Credits(_message.Message):
    __slots__ = ("credits",)
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    credits: _containers.RepeatedCompositeFieldContainer[Credit]
    def __init__(self, credits: _Optional[_Iterable[_Union[Credit, _Mapping]]] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: bytes
    def __init__(self, result: _Optional[bytes] = ...) -> None: ...

class Failed(_message.Message):
    __slots__ = ("kind", "message", "retry_after_ms", "delay_ms")
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    message: str
    retry_after_ms: int
    delay_ms: int
    def __init__(self, kind: _Optional[str] = ..., message: _Optional[str] = ..., retry_after_ms: _Optional[int] = ..., delay_ms: _Optional[int] = ...) -> None: ...

class Snoozed(_message.Message):
    __slots__ = ("delay_ms", "reason")
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    delay_ms: int
    reason: str
    def __init__(self, delay_ms: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Rejected(_message.Message):
    __slots__ = ("kind", "message")
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    kind: str
    message: str
    def __init__(self, kind: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class Lost(_message.Message):
    __slots__ = ("message", "returned")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    message: str
    returned: bool
    def __init__(self, message: _Optional[str] = ..., returned: _Optional[bool] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ("intent_id", "delivery", "done", "failed", "snoozed", "rejected", "lost", "log", "waited_ms")
    INTENT_ID_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    SNOOZED_FIELD_NUMBER: _ClassVar[int]
    REJECTED_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    WAITED_MS_FIELD_NUMBER: _ClassVar[int]
    intent_id: str
    delivery: int
    done: Done
    failed: Failed
    snoozed: Snoozed
    rejected: Rejected
    lost: Lost
    log: str
    waited_ms: int
    def __init__(self, intent_id: _Optional[str] = ..., delivery: _Optional[int] = ..., done: _Optional[_Union[Done, _Mapping]] = ..., failed: _Optional[_Union[Failed, _Mapping]] = ..., snoozed: _Optional[_Union[Snoozed, _Mapping]] = ..., rejected: _Optional[_Union[Rejected, _Mapping]] = ..., lost: _Optional[_Union[Lost, _Mapping]] = ..., log: _Optional[str] = ..., waited_ms: _Optional[int] = ...) -> None: ...

class ProgressReport(_message.Message):
    __slots__ = ("words",)
    class Word(_message.Message):
        __slots__ = ("intent_id", "delivery", "done", "total", "note")
        INTENT_ID_FIELD_NUMBER: _ClassVar[int]
        DELIVERY_FIELD_NUMBER: _ClassVar[int]
        DONE_FIELD_NUMBER: _ClassVar[int]
        TOTAL_FIELD_NUMBER: _ClassVar[int]
        NOTE_FIELD_NUMBER: _ClassVar[int]
        intent_id: str
        delivery: int
        done: float
        total: float
        note: str
        def __init__(self, intent_id: _Optional[str] = ..., delivery: _Optional[int] = ..., done: _Optional[float] = ..., total: _Optional[float] = ..., note: _Optional[str] = ...) -> None: ...
    WORDS_FIELD_NUMBER: _ClassVar[int]
    words: _containers.RepeatedCompositeFieldContainer[ProgressReport.Word]
    def __init__(self, words: _Optional[_Iterable[_Union[ProgressReport.Word, _Mapping]]] = ...) -> None: ...

class Acks(_message.Message):
    __slots__ = ("acks", "credits", "number")
    ACKS_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    acks: _containers.RepeatedCompositeFieldContainer[Ack]
    credits: _containers.RepeatedCompositeFieldContainer[Credit]
    number: int
    def __init__(self, acks: _Optional[_Iterable[_Union[Ack, _Mapping]]] = ..., credits: _Optional[_Iterable[_Union[Credit, _Mapping]]] = ..., number: _Optional[int] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Drain(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ClientMessage(_message.Message):
    __slots__ = ("hello", "credits", "acks", "heartbeat", "drain", "progress")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    ACKS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    credits: Credits
    acks: Acks
    heartbeat: Heartbeat
    drain: Drain
    progress: ProgressReport
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., credits: _Optional[_Union[Credits, _Mapping]] = ..., acks: _Optional[_Union[Acks, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., drain: _Optional[_Union[Drain, _Mapping]] = ..., progress: _Optional[_Union[ProgressReport, _Mapping]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("consumer", "heartbeat_ms", "credits_max")
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_MS_FIELD_NUMBER: _ClassVar[int]
    CREDITS_MAX_FIELD_NUMBER: _ClassVar[int]
    consumer: str
    heartbeat_ms: int
    credits_max: int
    def __init__(self, consumer: _Optional[str] = ..., heartbeat_ms: _Optional[int] = ..., credits_max: _Optional[int] = ...) -> None: ...

class Delivery(_message.Message):
    __slots__ = ("intent_id", "delivery", "attempt", "precision_tier", "execute_at_ms", "late_ms", "payload", "tags", "traceparent", "deadline_ms", "lease_ms", "timeout_ms", "stream", "task", "entity", "max_attempts", "headers")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    INTENT_ID_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PRECISION_TIER_FIELD_NUMBER: _ClassVar[int]
    EXECUTE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LATE_MS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    intent_id: str
    delivery: int
    attempt: int
    precision_tier: _intents_pb2.PrecisionTier
    execute_at_ms: int
    late_ms: int
    payload: bytes
    tags: _containers.ScalarMap[str, str]
    traceparent: str
    deadline_ms: int
    lease_ms: int
    timeout_ms: int
    stream: _intents_pb2.Stream
    task: _intents_pb2.Task
    entity: _intents_pb2.Entity
    max_attempts: int
    headers: _containers.ScalarMap[str, str]
    def __init__(self, intent_id: _Optional[str] = ..., delivery: _Optional[int] = ..., attempt: _Optional[int] = ..., precision_tier: _Optional[_Union[_intents_pb2.PrecisionTier, str]] = ..., execute_at_ms: _Optional[int] = ..., late_ms: _Optional[int] = ..., payload: _Optional[bytes] = ..., tags: _Optional[_Mapping[str, str]] = ..., traceparent: _Optional[str] = ..., deadline_ms: _Optional[int] = ..., lease_ms: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., stream: _Optional[_Union[_intents_pb2.Stream, _Mapping]] = ..., task: _Optional[_Union[_intents_pb2.Task, _Mapping]] = ..., entity: _Optional[_Union[_intents_pb2.Entity, _Mapping]] = ..., max_attempts: _Optional[int] = ..., headers: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Deliveries(_message.Message):
    __slots__ = ("deliveries",)
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    deliveries: _containers.RepeatedCompositeFieldContainer[Delivery]
    def __init__(self, deliveries: _Optional[_Iterable[_Union[Delivery, _Mapping]]] = ...) -> None: ...

class AckResults(_message.Message):
    __slots__ = ("number", "counted", "stale")
    class Stale(_message.Message):
        __slots__ = ("intent_id", "delivery")
        INTENT_ID_FIELD_NUMBER: _ClassVar[int]
        DELIVERY_FIELD_NUMBER: _ClassVar[int]
        intent_id: str
        delivery: int
        def __init__(self, intent_id: _Optional[str] = ..., delivery: _Optional[int] = ...) -> None: ...
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    COUNTED_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    number: int
    counted: int
    stale: _containers.RepeatedCompositeFieldContainer[AckResults.Stale]
    def __init__(self, number: _Optional[int] = ..., counted: _Optional[int] = ..., stale: _Optional[_Iterable[_Union[AckResults.Stale, _Mapping]]] = ...) -> None: ...

class Aborts(_message.Message):
    __slots__ = ("aborts",)
    class Abort(_message.Message):
        __slots__ = ("intent_id", "delivery", "reason")
        INTENT_ID_FIELD_NUMBER: _ClassVar[int]
        DELIVERY_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        intent_id: str
        delivery: int
        reason: str
        def __init__(self, intent_id: _Optional[str] = ..., delivery: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...
    ABORTS_FIELD_NUMBER: _ClassVar[int]
    aborts: _containers.RepeatedCompositeFieldContainer[Aborts.Abort]
    def __init__(self, aborts: _Optional[_Iterable[_Union[Aborts.Abort, _Mapping]]] = ...) -> None: ...

class Drained(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GoingAway(_message.Message):
    __slots__ = ("grace_ms",)
    GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    grace_ms: int
    def __init__(self, grace_ms: _Optional[int] = ...) -> None: ...

class ServerMessage(_message.Message):
    __slots__ = ("welcome", "deliveries", "ack_results", "aborts", "drained", "going_away")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    ACK_RESULTS_FIELD_NUMBER: _ClassVar[int]
    ABORTS_FIELD_NUMBER: _ClassVar[int]
    DRAINED_FIELD_NUMBER: _ClassVar[int]
    GOING_AWAY_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    deliveries: Deliveries
    ack_results: AckResults
    aborts: Aborts
    drained: Drained
    going_away: GoingAway
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., deliveries: _Optional[_Union[Deliveries, _Mapping]] = ..., ack_results: _Optional[_Union[AckResults, _Mapping]] = ..., aborts: _Optional[_Union[Aborts, _Mapping]] = ..., drained: _Optional[_Union[Drained, _Mapping]] = ..., going_away: _Optional[_Union[GoingAway, _Mapping]] = ...) -> None: ...
