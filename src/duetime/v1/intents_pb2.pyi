from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PrecisionTier(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRECISION_TIER_UNSPECIFIED: _ClassVar[PrecisionTier]
    PRECISION_TIER_ULTRA: _ClassVar[PrecisionTier]
    PRECISION_TIER_FAST: _ClassVar[PrecisionTier]
    PRECISION_TIER_HIGH: _ClassVar[PrecisionTier]
    PRECISION_TIER_STANDARD: _ClassVar[PrecisionTier]
    PRECISION_TIER_ECONOMY: _ClassVar[PrecisionTier]

class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATUS_UNSPECIFIED: _ClassVar[Status]
    STATUS_SCHEDULED: _ClassVar[Status]
    STATUS_DUE: _ClassVar[Status]
    STATUS_DISPATCHING: _ClassVar[Status]
    STATUS_BLOCKED: _ClassVar[Status]
    STATUS_ACKED: _ClassVar[Status]
    STATUS_DEAD_LETTERED: _ClassVar[Status]
    STATUS_EXPIRED: _ClassVar[Status]
    STATUS_CANCELED: _ClassVar[Status]

class ExpiredAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXPIRED_ACTION_UNSPECIFIED: _ClassVar[ExpiredAction]
    EXPIRED_ACTION_DISCARD: _ClassVar[ExpiredAction]
    EXPIRED_ACTION_DEAD_LETTER: _ClassVar[ExpiredAction]

class AckLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACK_LEVEL_UNSPECIFIED: _ClassVar[AckLevel]
    ACK_LEVEL_ASYNC: _ClassVar[AckLevel]
    ACK_LEVEL_BATCH_DEFERRED: _ClassVar[AckLevel]
    ACK_LEVEL_DURABLE: _ClassVar[AckLevel]
    ACK_LEVEL_REPLICATED: _ClassVar[AckLevel]

class Guarantee(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GUARANTEE_UNSPECIFIED: _ClassVar[Guarantee]
    GUARANTEE_AT_LEAST_ONCE: _ClassVar[Guarantee]
    GUARANTEE_AT_MOST_ONCE: _ClassVar[Guarantee]

class AfterOn(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AFTER_ON_UNSPECIFIED: _ClassVar[AfterOn]
    AFTER_ON_SUCCESS: _ClassVar[AfterOn]
    AFTER_ON_END: _ClassVar[AfterOn]
    AFTER_ON_FAILURE: _ClassVar[AfterOn]

class FirstArgument(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FIRST_ARGUMENT_UNSPECIFIED: _ClassVar[FirstArgument]
    FIRST_ARGUMENT_RESULT: _ClassVar[FirstArgument]
    FIRST_ARGUMENT_RESULTS: _ClassVar[FirstArgument]
    FIRST_ARGUMENT_FAILURE: _ClassVar[FirstArgument]

class OnDuplicate(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ON_DUPLICATE_UNSPECIFIED: _ClassVar[OnDuplicate]
    ON_DUPLICATE_RETURN: _ClassVar[OnDuplicate]
    ON_DUPLICATE_REJECT: _ClassVar[OnDuplicate]

class Collapse(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COLLAPSE_UNSPECIFIED: _ClassVar[Collapse]
    COLLAPSE_DEBOUNCE: _ClassVar[Collapse]
    COLLAPSE_THROTTLE: _ClassVar[Collapse]

class Until(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNTIL_UNSPECIFIED: _ClassVar[Until]
    UNTIL_START: _ClassVar[Until]
    UNTIL_END: _ClassVar[Until]
    UNTIL_TIME: _ClassVar[Until]

class Backoff(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BACKOFF_UNSPECIFIED: _ClassVar[Backoff]
    BACKOFF_EXPONENTIAL: _ClassVar[Backoff]
    BACKOFF_FIXED: _ClassVar[Backoff]
PRECISION_TIER_UNSPECIFIED: PrecisionTier
PRECISION_TIER_ULTRA: PrecisionTier
PRECISION_TIER_FAST: PrecisionTier
PRECISION_TIER_HIGH: PrecisionTier
PRECISION_TIER_STANDARD: PrecisionTier
PRECISION_TIER_ECONOMY: PrecisionTier
STATUS_UNSPECIFIED: Status
STATUS_SCHEDULED: Status
STATUS_DUE: Status
STATUS_DISPATCHING: Status
STATUS_BLOCKED: Status
STATUS_ACKED: Status
STATUS_DEAD_LETTERED: Status
STATUS_EXPIRED: Status
STATUS_CANCELED: Status
EXPIRED_ACTION_UNSPECIFIED: ExpiredAction
EXPIRED_ACTION_DISCARD: ExpiredAction
EXPIRED_ACTION_DEAD_LETTER: ExpiredAction
ACK_LEVEL_UNSPECIFIED: AckLevel
ACK_LEVEL_ASYNC: AckLevel
ACK_LEVEL_BATCH_DEFERRED: AckLevel
ACK_LEVEL_DURABLE: AckLevel
ACK_LEVEL_REPLICATED: AckLevel
GUARANTEE_UNSPECIFIED: Guarantee
GUARANTEE_AT_LEAST_ONCE: Guarantee
GUARANTEE_AT_MOST_ONCE: Guarantee
AFTER_ON_UNSPECIFIED: AfterOn
AFTER_ON_SUCCESS: AfterOn
AFTER_ON_END: AfterOn
AFTER_ON_FAILURE: AfterOn
FIRST_ARGUMENT_UNSPECIFIED: FirstArgument
FIRST_ARGUMENT_RESULT: FirstArgument
FIRST_ARGUMENT_RESULTS: FirstArgument
FIRST_ARGUMENT_FAILURE: FirstArgument
ON_DUPLICATE_UNSPECIFIED: OnDuplicate
ON_DUPLICATE_RETURN: OnDuplicate
ON_DUPLICATE_REJECT: OnDuplicate
COLLAPSE_UNSPECIFIED: Collapse
COLLAPSE_DEBOUNCE: Collapse
COLLAPSE_THROTTLE: Collapse
UNTIL_UNSPECIFIED: Until
UNTIL_START: Until
UNTIL_END: Until
UNTIL_TIME: Until
BACKOFF_UNSPECIFIED: Backoff
BACKOFF_EXPONENTIAL: Backoff
BACKOFF_FIXED: Backoff

class Callback(_message.Message):
    __slots__ = ("url", "method", "headers", "body", "batch", "parents", "on_end")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    URL_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    ON_END_FIELD_NUMBER: _ClassVar[int]
    url: str
    method: str
    headers: _containers.ScalarMap[str, str]
    body: bytes
    batch: bool
    parents: bool
    on_end: str
    def __init__(self, url: _Optional[str] = ..., method: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., body: _Optional[bytes] = ..., batch: _Optional[bool] = ..., parents: _Optional[bool] = ..., on_end: _Optional[str] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("name", "queue")
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    queue: str
    def __init__(self, name: _Optional[str] = ..., queue: _Optional[str] = ...) -> None: ...

class Entity(_message.Message):
    __slots__ = ("type", "id", "message")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    type: str
    id: str
    message: str
    def __init__(self, type: _Optional[str] = ..., id: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class Stream(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class Slo(_message.Message):
    __slots__ = ("max_tardiness_ms", "reliability", "tier", "reason")
    MAX_TARDINESS_MS_FIELD_NUMBER: _ClassVar[int]
    RELIABILITY_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    max_tardiness_ms: int
    reliability: Guarantee
    tier: PrecisionTier
    reason: str
    def __init__(self, max_tardiness_ms: _Optional[int] = ..., reliability: _Optional[_Union[Guarantee, str]] = ..., tier: _Optional[_Union[PrecisionTier, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class Redelivery(_message.Message):
    __slots__ = ("max_attempts", "backoff", "initial_delay_ms", "max_delay_ms", "multiplier", "jitter")
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    INITIAL_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    MULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    JITTER_FIELD_NUMBER: _ClassVar[int]
    max_attempts: int
    backoff: Backoff
    initial_delay_ms: int
    max_delay_ms: int
    multiplier: float
    jitter: bool
    def __init__(self, max_attempts: _Optional[int] = ..., backoff: _Optional[_Union[Backoff, str]] = ..., initial_delay_ms: _Optional[int] = ..., max_delay_ms: _Optional[int] = ..., multiplier: _Optional[float] = ..., jitter: _Optional[bool] = ...) -> None: ...

class Limit(_message.Message):
    __slots__ = ("key", "rate", "burst", "concurrency")
    KEY_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    key: str
    rate: str
    burst: int
    concurrency: int
    def __init__(self, key: _Optional[str] = ..., rate: _Optional[str] = ..., burst: _Optional[int] = ..., concurrency: _Optional[int] = ...) -> None: ...

class Unique(_message.Message):
    __slots__ = ("key", "until", "for_ms")
    KEY_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    FOR_MS_FIELD_NUMBER: _ClassVar[int]
    key: str
    until: Until
    for_ms: int
    def __init__(self, key: _Optional[str] = ..., until: _Optional[_Union[Until, str]] = ..., for_ms: _Optional[int] = ...) -> None: ...

class NewIntent(_message.Message):
    __slots__ = ("intent_id", "execute_at_ms", "delay_ms", "deadline_ms", "expired_action", "precision_tier", "slo", "ack_level", "guarantee", "callback", "task", "entity", "stream", "payload", "priority", "redelivery", "timeout_ms", "lease_ms", "after", "idempotency_key", "on_duplicate", "tags", "shard_key", "traceparent", "limits", "collapse_key", "collapse", "unique", "fairness_key", "fairness_weight", "result_ttl_ms", "after_on", "group", "members", "expires_ms", "headers", "first_argument", "after_delay_ms")
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
    EXECUTE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_ACTION_FIELD_NUMBER: _ClassVar[int]
    PRECISION_TIER_FIELD_NUMBER: _ClassVar[int]
    SLO_FIELD_NUMBER: _ClassVar[int]
    ACK_LEVEL_FIELD_NUMBER: _ClassVar[int]
    GUARANTEE_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    REDELIVERY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    ON_DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    SHARD_KEY_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    COLLAPSE_KEY_FIELD_NUMBER: _ClassVar[int]
    COLLAPSE_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    RESULT_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    AFTER_ON_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    FIRST_ARGUMENT_FIELD_NUMBER: _ClassVar[int]
    AFTER_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    intent_id: str
    execute_at_ms: int
    delay_ms: int
    deadline_ms: int
    expired_action: ExpiredAction
    precision_tier: PrecisionTier
    slo: Slo
    ack_level: AckLevel
    guarantee: Guarantee
    callback: Callback
    task: Task
    entity: Entity
    stream: Stream
    payload: bytes
    priority: int
    redelivery: Redelivery
    timeout_ms: int
    lease_ms: int
    after: _containers.RepeatedScalarFieldContainer[str]
    idempotency_key: str
    on_duplicate: OnDuplicate
    tags: _containers.ScalarMap[str, str]
    shard_key: str
    traceparent: str
    limits: _containers.RepeatedCompositeFieldContainer[Limit]
    collapse_key: str
    collapse: Collapse
    unique: Unique
    fairness_key: str
    fairness_weight: int
    result_ttl_ms: int
    after_on: AfterOn
    group: str
    members: int
    expires_ms: int
    headers: _containers.ScalarMap[str, str]
    first_argument: FirstArgument
    after_delay_ms: int
    def __init__(self, intent_id: _Optional[str] = ..., execute_at_ms: _Optional[int] = ..., delay_ms: _Optional[int] = ..., deadline_ms: _Optional[int] = ..., expired_action: _Optional[_Union[ExpiredAction, str]] = ..., precision_tier: _Optional[_Union[PrecisionTier, str]] = ..., slo: _Optional[_Union[Slo, _Mapping]] = ..., ack_level: _Optional[_Union[AckLevel, str]] = ..., guarantee: _Optional[_Union[Guarantee, str]] = ..., callback: _Optional[_Union[Callback, _Mapping]] = ..., task: _Optional[_Union[Task, _Mapping]] = ..., entity: _Optional[_Union[Entity, _Mapping]] = ..., stream: _Optional[_Union[Stream, _Mapping]] = ..., payload: _Optional[bytes] = ..., priority: _Optional[int] = ..., redelivery: _Optional[_Union[Redelivery, _Mapping]] = ..., timeout_ms: _Optional[int] = ..., lease_ms: _Optional[int] = ..., after: _Optional[_Iterable[str]] = ..., idempotency_key: _Optional[str] = ..., on_duplicate: _Optional[_Union[OnDuplicate, str]] = ..., tags: _Optional[_Mapping[str, str]] = ..., shard_key: _Optional[str] = ..., traceparent: _Optional[str] = ..., limits: _Optional[_Iterable[_Union[Limit, _Mapping]]] = ..., collapse_key: _Optional[str] = ..., collapse: _Optional[_Union[Collapse, str]] = ..., unique: _Optional[_Union[Unique, _Mapping]] = ..., fairness_key: _Optional[str] = ..., fairness_weight: _Optional[int] = ..., result_ttl_ms: _Optional[int] = ..., after_on: _Optional[_Union[AfterOn, str]] = ..., group: _Optional[str] = ..., members: _Optional[int] = ..., expires_ms: _Optional[int] = ..., headers: _Optional[_Mapping[str, str]] = ..., first_argument: _Optional[_Union[FirstArgument, str]] = ..., after_delay_ms: _Optional[int] = ...) -> None: ...

class LastError(_message.Message):
    __slots__ = ("at_ms", "delivery", "kind", "message", "http_status")
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HTTP_STATUS_FIELD_NUMBER: _ClassVar[int]
    at_ms: int
    delivery: int
    kind: str
    message: str
    http_status: int
    def __init__(self, at_ms: _Optional[int] = ..., delivery: _Optional[int] = ..., kind: _Optional[str] = ..., message: _Optional[str] = ..., http_status: _Optional[int] = ...) -> None: ...

class Intent(_message.Message):
    __slots__ = ("intent_id", "status", "execute_at_ms", "deadline_ms", "expired_action", "precision_tier", "slo", "ack_level", "guarantee", "callback", "task", "entity", "stream", "payload", "priority", "redelivery", "timeout_ms", "lease_ms", "after", "idempotency_key", "tags", "shard_key", "traceparent", "attempts", "delivery", "revision", "created_at_ms", "updated_at_ms", "due_at_ms", "first_dispatch_at_ms", "finished_at_ms", "next_attempt_at_ms", "late_ms", "limited_ms", "last_error", "result", "limits", "collapse_key", "collapse", "unique", "fairness_key", "fairness_weight", "result_ttl_ms", "result_gone", "progress", "after_on", "group", "members", "joined", "left", "expires_ms", "headers", "first_argument", "after_delay_ms", "ack_meaning")
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
    STATUS_FIELD_NUMBER: _ClassVar[int]
    EXECUTE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_ACTION_FIELD_NUMBER: _ClassVar[int]
    PRECISION_TIER_FIELD_NUMBER: _ClassVar[int]
    SLO_FIELD_NUMBER: _ClassVar[int]
    ACK_LEVEL_FIELD_NUMBER: _ClassVar[int]
    GUARANTEE_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ENTITY_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    REDELIVERY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    SHARD_KEY_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    DUE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    FIRST_DISPATCH_AT_MS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    NEXT_ATTEMPT_AT_MS_FIELD_NUMBER: _ClassVar[int]
    LATE_MS_FIELD_NUMBER: _ClassVar[int]
    LIMITED_MS_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    COLLAPSE_KEY_FIELD_NUMBER: _ClassVar[int]
    COLLAPSE_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_KEY_FIELD_NUMBER: _ClassVar[int]
    FAIRNESS_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    RESULT_TTL_MS_FIELD_NUMBER: _ClassVar[int]
    RESULT_GONE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    AFTER_ON_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    JOINED_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    FIRST_ARGUMENT_FIELD_NUMBER: _ClassVar[int]
    AFTER_DELAY_MS_FIELD_NUMBER: _ClassVar[int]
    ACK_MEANING_FIELD_NUMBER: _ClassVar[int]
    intent_id: str
    status: Status
    execute_at_ms: int
    deadline_ms: int
    expired_action: ExpiredAction
    precision_tier: PrecisionTier
    slo: Slo
    ack_level: AckLevel
    guarantee: Guarantee
    callback: Callback
    task: Task
    entity: Entity
    stream: Stream
    payload: bytes
    priority: int
    redelivery: Redelivery
    timeout_ms: int
    lease_ms: int
    after: _containers.RepeatedScalarFieldContainer[str]
    idempotency_key: str
    tags: _containers.ScalarMap[str, str]
    shard_key: str
    traceparent: str
    attempts: int
    delivery: int
    revision: int
    created_at_ms: int
    updated_at_ms: int
    due_at_ms: int
    first_dispatch_at_ms: int
    finished_at_ms: int
    next_attempt_at_ms: int
    late_ms: int
    limited_ms: int
    last_error: LastError
    result: bytes
    limits: _containers.RepeatedCompositeFieldContainer[Limit]
    collapse_key: str
    collapse: Collapse
    unique: Unique
    fairness_key: str
    fairness_weight: int
    result_ttl_ms: int
    result_gone: bool
    progress: Progress
    after_on: AfterOn
    group: str
    members: int
    joined: int
    left: int
    expires_ms: int
    headers: _containers.ScalarMap[str, str]
    first_argument: FirstArgument
    after_delay_ms: int
    ack_meaning: str
    def __init__(self, intent_id: _Optional[str] = ..., status: _Optional[_Union[Status, str]] = ..., execute_at_ms: _Optional[int] = ..., deadline_ms: _Optional[int] = ..., expired_action: _Optional[_Union[ExpiredAction, str]] = ..., precision_tier: _Optional[_Union[PrecisionTier, str]] = ..., slo: _Optional[_Union[Slo, _Mapping]] = ..., ack_level: _Optional[_Union[AckLevel, str]] = ..., guarantee: _Optional[_Union[Guarantee, str]] = ..., callback: _Optional[_Union[Callback, _Mapping]] = ..., task: _Optional[_Union[Task, _Mapping]] = ..., entity: _Optional[_Union[Entity, _Mapping]] = ..., stream: _Optional[_Union[Stream, _Mapping]] = ..., payload: _Optional[bytes] = ..., priority: _Optional[int] = ..., redelivery: _Optional[_Union[Redelivery, _Mapping]] = ..., timeout_ms: _Optional[int] = ..., lease_ms: _Optional[int] = ..., after: _Optional[_Iterable[str]] = ..., idempotency_key: _Optional[str] = ..., tags: _Optional[_Mapping[str, str]] = ..., shard_key: _Optional[str] = ..., traceparent: _Optional[str] = ..., attempts: _Optional[int] = ..., delivery: _Optional[int] = ..., revision: _Optional[int] = ..., created_at_ms: _Optional[int] = ..., updated_at_ms: _Optional[int] = ..., due_at_ms: _Optional[int] = ..., first_dispatch_at_ms: _Optional[int] = ..., finished_at_ms: _Optional[int] = ..., next_attempt_at_ms: _Optional[int] = ..., late_ms: _Optional[int] = ..., limited_ms: _Optional[int] = ..., last_error: _Optional[_Union[LastError, _Mapping]] = ..., result: _Optional[bytes] = ..., limits: _Optional[_Iterable[_Union[Limit, _Mapping]]] = ..., collapse_key: _Optional[str] = ..., collapse: _Optional[_Union[Collapse, str]] = ..., unique: _Optional[_Union[Unique, _Mapping]] = ..., fairness_key: _Optional[str] = ..., fairness_weight: _Optional[int] = ..., result_ttl_ms: _Optional[int] = ..., result_gone: _Optional[bool] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., after_on: _Optional[_Union[AfterOn, str]] = ..., group: _Optional[str] = ..., members: _Optional[int] = ..., joined: _Optional[int] = ..., left: _Optional[int] = ..., expires_ms: _Optional[int] = ..., headers: _Optional[_Mapping[str, str]] = ..., first_argument: _Optional[_Union[FirstArgument, str]] = ..., after_delay_ms: _Optional[int] = ..., ack_meaning: _Optional[str] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("done", "total", "note", "at_ms")
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    done: float
    total: float
    note: str
    at_ms: int
    def __init__(self, done: _Optional[float] = ..., total: _Optional[float] = ..., note: _Optional[str] = ..., at_ms: _Optional[int] = ...) -> None: ...

class Problem(_message.Message):
    __slots__ = ("error_code", "status", "message", "retryable", "json")
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    JSON_FIELD_NUMBER: _ClassVar[int]
    error_code: int
    status: int
    message: str
    retryable: bool
    json: bytes
    def __init__(self, error_code: _Optional[int] = ..., status: _Optional[int] = ..., message: _Optional[str] = ..., retryable: _Optional[bool] = ..., json: _Optional[bytes] = ...) -> None: ...

class CreateRequest(_message.Message):
    __slots__ = ("intent",)
    INTENT_FIELD_NUMBER: _ClassVar[int]
    intent: NewIntent
    def __init__(self, intent: _Optional[_Union[NewIntent, _Mapping]] = ...) -> None: ...

class CreateResponse(_message.Message):
    __slots__ = ("intent", "existing")
    INTENT_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    intent: Intent
    existing: bool
    def __init__(self, intent: _Optional[_Union[Intent, _Mapping]] = ..., existing: _Optional[bool] = ...) -> None: ...

class CreateBatchRequest(_message.Message):
    __slots__ = ("intents",)
    INTENTS_FIELD_NUMBER: _ClassVar[int]
    intents: _containers.RepeatedCompositeFieldContainer[NewIntent]
    def __init__(self, intents: _Optional[_Iterable[_Union[NewIntent, _Mapping]]] = ...) -> None: ...

class CreateBatchResponse(_message.Message):
    __slots__ = ("items", "created", "existing", "failed")
    class Item(_message.Message):
        __slots__ = ("status", "intent", "error")
        STATUS_FIELD_NUMBER: _ClassVar[int]
        INTENT_FIELD_NUMBER: _ClassVar[int]
        ERROR_FIELD_NUMBER: _ClassVar[int]
        status: int
        intent: Intent
        error: Problem
        def __init__(self, status: _Optional[int] = ..., intent: _Optional[_Union[Intent, _Mapping]] = ..., error: _Optional[_Union[Problem, _Mapping]] = ...) -> None: ...
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[CreateBatchResponse.Item]
    created: int
    existing: int
    failed: int
    def __init__(self, items: _Optional[_Iterable[_Union[CreateBatchResponse.Item, _Mapping]]] = ..., created: _Optional[int] = ..., existing: _Optional[int] = ..., failed: _Optional[int] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("intent_id",)
    INTENT_ID_FIELD_NUMBER: _ClassVar[int]
    intent_id: str
    def __init__(self, intent_id: _Optional[str] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("statuses", "tier", "queue", "task", "entity_type", "entity_id", "tags", "from_ms", "to_ms", "by_due_time", "limit", "cursor")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ENTITY_TYPE_FIELD_NUMBER: _ClassVar[int]
    ENTITY_ID_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    FROM_MS_FIELD_NUMBER: _ClassVar[int]
    TO_MS_FIELD_NUMBER: _ClassVar[int]
    BY_DUE_TIME_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    statuses: _containers.RepeatedScalarFieldContainer[Status]
    tier: PrecisionTier
    queue: str
    task: str
    entity_type: str
    entity_id: str
    tags: _containers.ScalarMap[str, str]
    from_ms: int
    to_ms: int
    by_due_time: bool
    limit: int
    cursor: str
    def __init__(self, statuses: _Optional[_Iterable[_Union[Status, str]]] = ..., tier: _Optional[_Union[PrecisionTier, str]] = ..., queue: _Optional[str] = ..., task: _Optional[str] = ..., entity_type: _Optional[str] = ..., entity_id: _Optional[str] = ..., tags: _Optional[_Mapping[str, str]] = ..., from_ms: _Optional[int] = ..., to_ms: _Optional[int] = ..., by_due_time: _Optional[bool] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("intents", "next_cursor", "partial")
    INTENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_FIELD_NUMBER: _ClassVar[int]
    intents: _containers.RepeatedCompositeFieldContainer[Intent]
    next_cursor: str
    partial: bool
    def __init__(self, intents: _Optional[_Iterable[_Union[Intent, _Mapping]]] = ..., next_cursor: _Optional[str] = ..., partial: _Optional[bool] = ...) -> None: ...

class Tags(_message.Message):
    __slots__ = ("values",)
    class ValuesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.ScalarMap[str, str]
    def __init__(self, values: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PatchRequest(_message.Message):
    __slots__ = ("intent_id", "expected_revision", "execute_at_ms", "deadline_ms", "expired_action", "redelivery", "tags", "priority", "payload")
    INTENT_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    EXECUTE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_ACTION_FIELD_NUMBER: _ClassVar[int]
    REDELIVERY_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    intent_id: str
    expected_revision: int
    execute_at_ms: int
    deadline_ms: int
    expired_action: ExpiredAction
    redelivery: Redelivery
    tags: Tags
    priority: int
    payload: bytes
    def __init__(self, intent_id: _Optional[str] = ..., expected_revision: _Optional[int] = ..., execute_at_ms: _Optional[int] = ..., deadline_ms: _Optional[int] = ..., expired_action: _Optional[_Union[ExpiredAction, str]] = ..., redelivery: _Optional[_Union[Redelivery, _Mapping]] = ..., tags: _Optional[_Union[Tags, _Mapping]] = ..., priority: _Optional[int] = ..., payload: _Optional[bytes] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("intent_id", "expected_revision", "tree")
    INTENT_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    TREE_FIELD_NUMBER: _ClassVar[int]
    intent_id: str
    expected_revision: int
    tree: bool
    def __init__(self, intent_id: _Optional[str] = ..., expected_revision: _Optional[int] = ..., tree: _Optional[bool] = ...) -> None: ...

class FireNowRequest(_message.Message):
    __slots__ = ("intent_id", "expected_revision")
    INTENT_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    intent_id: str
    expected_revision: int
    def __init__(self, intent_id: _Optional[str] = ..., expected_revision: _Optional[int] = ...) -> None: ...

class ReviveRequest(_message.Message):
    __slots__ = ("intent_id", "expected_revision", "execute_at_ms", "deadline_ms", "callback", "redelivery", "payload")
    INTENT_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REVISION_FIELD_NUMBER: _ClassVar[int]
    EXECUTE_AT_MS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_MS_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_FIELD_NUMBER: _ClassVar[int]
    REDELIVERY_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    intent_id: str
    expected_revision: int
    execute_at_ms: int
    deadline_ms: int
    callback: Callback
    redelivery: Redelivery
    payload: bytes
    def __init__(self, intent_id: _Optional[str] = ..., expected_revision: _Optional[int] = ..., execute_at_ms: _Optional[int] = ..., deadline_ms: _Optional[int] = ..., callback: _Optional[_Union[Callback, _Mapping]] = ..., redelivery: _Optional[_Union[Redelivery, _Mapping]] = ..., payload: _Optional[bytes] = ...) -> None: ...

class HealthRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HealthResponse(_message.Message):
    __slots__ = ("status", "narrative", "report")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    NARRATIVE_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    status: str
    narrative: str
    report: bytes
    def __init__(self, status: _Optional[str] = ..., narrative: _Optional[str] = ..., report: _Optional[bytes] = ...) -> None: ...

class WatchIntentsRequest(_message.Message):
    __slots__ = ("statuses", "tier", "queue", "task", "entity_type", "entity_id", "intent_id", "last_event_id")
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ENTITY_TYPE_FIELD_NUMBER: _ClassVar[int]
    ENTITY_ID_FIELD_NUMBER: _ClassVar[int]
    INTENT_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    statuses: _containers.RepeatedScalarFieldContainer[Status]
    tier: PrecisionTier
    queue: str
    task: str
    entity_type: str
    entity_id: str
    intent_id: str
    last_event_id: str
    def __init__(self, statuses: _Optional[_Iterable[_Union[Status, str]]] = ..., tier: _Optional[_Union[PrecisionTier, str]] = ..., queue: _Optional[str] = ..., task: _Optional[str] = ..., entity_type: _Optional[str] = ..., entity_id: _Optional[str] = ..., intent_id: _Optional[str] = ..., last_event_id: _Optional[str] = ...) -> None: ...

class Transition(_message.Message):
    __slots__ = ("event_id", "intent_id", "status", "previous_status", "at_ms", "delivery", "attempts", "precision_tier", "lane", "late_ms", "limited_ms", "error", "error_kind", "task", "queue", "tags")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    INTENT_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_STATUS_FIELD_NUMBER: _ClassVar[int]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    PRECISION_TIER_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    LATE_MS_FIELD_NUMBER: _ClassVar[int]
    LIMITED_MS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ERROR_KIND_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    intent_id: str
    status: Status
    previous_status: Status
    at_ms: int
    delivery: int
    attempts: int
    precision_tier: PrecisionTier
    lane: str
    late_ms: int
    limited_ms: int
    error: str
    error_kind: str
    task: str
    queue: str
    tags: _containers.ScalarMap[str, str]
    def __init__(self, event_id: _Optional[str] = ..., intent_id: _Optional[str] = ..., status: _Optional[_Union[Status, str]] = ..., previous_status: _Optional[_Union[Status, str]] = ..., at_ms: _Optional[int] = ..., delivery: _Optional[int] = ..., attempts: _Optional[int] = ..., precision_tier: _Optional[_Union[PrecisionTier, str]] = ..., lane: _Optional[str] = ..., late_ms: _Optional[int] = ..., limited_ms: _Optional[int] = ..., error: _Optional[str] = ..., error_kind: _Optional[str] = ..., task: _Optional[str] = ..., queue: _Optional[str] = ..., tags: _Optional[_Mapping[str, str]] = ...) -> None: ...

class WatchIntentsResponse(_message.Message):
    __slots__ = ("transitions", "gap", "last_event_id")
    TRANSITIONS_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    LAST_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    transitions: _containers.RepeatedCompositeFieldContainer[Transition]
    gap: bool
    last_event_id: str
    def __init__(self, transitions: _Optional[_Iterable[_Union[Transition, _Mapping]]] = ..., gap: _Optional[bool] = ..., last_event_id: _Optional[str] = ...) -> None: ...
