"""Deliveries over HTTP: a worker claims them, settles them and extends their leases."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from duetime import limits
from duetime.wire.intent import EntityTarget, KnownId, StreamTarget, TaskTarget, TierName
from duetime.wire.shapes import In, Moment, Out

Consumer = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=limits.CONSUMER_CHARS_MAX,
        description="Name of the worker. Claim, settle and extend with the same name.",
        examples=["mailer-1"],
    ),
]
DeliveryNumber = Annotated[int, Meta(ge=1, le=2**62, description="Number of the delivery, as claimed.")]
AttemptLog = Annotated[str, Meta(description="Log lines of the attempt; the newest part is kept.")]
ErrorKind = Annotated[str, Meta(description="Short name of the error.", examples=["SmtpError"])]
ErrorText = Annotated[str, Meta(description="What went wrong, for people.")]
DelayMs = Annotated[int, Meta(ge=0, le=limits.RETRY_DELAY_MS_MAX)]


class ClaimDeliveries(In, frozen=True):
    """Asks for deliveries."""

    consumer: Consumer
    max: Annotated[int, Meta(ge=1, le=limits.DELIVERIES_MAX, description="Maximum number of deliveries.")] = 1
    wait_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=limits.CLAIM_WAIT_MS_MAX,
            description="How long to wait for a first delivery. 0: answer at once.",
        ),
    ] = 0


class DeliveryOutcome(In, frozen=True, tag_field="outcome"):
    """How a delivery ended: one of the classes below."""

    intent_id: KnownId
    delivery: DeliveryNumber
    log: AttemptLog | None = None


class DoneOutcome(DeliveryOutcome, frozen=True, tag="done"):
    """It succeeded."""

    result: Annotated[Raw | UnsetType, Meta(description="The result: any JSON.")] = UNSET


class FailedOutcome(DeliveryOutcome, frozen=True, tag="failed"):
    """This attempt failed: it is retried if attempts are left."""

    kind: ErrorKind = "failed"
    message: ErrorText = ""
    delay_ms: (
        Annotated[DelayMs, Meta(description="Delay before the retry (default: by the retry policy).")] | None
    ) = None
    retry_after_ms: Annotated[DelayMs, Meta(description="Minimum delay before the retry.")] = 0


class RejectedOutcome(DeliveryOutcome, frozen=True, tag="rejected"):
    """It can never succeed: it becomes a dead letter at once."""

    kind: ErrorKind = "rejected"
    message: ErrorText = ""


class SnoozedOutcome(DeliveryOutcome, frozen=True, kw_only=True, tag="snoozed"):
    """It is to run later. This counts as no attempt."""

    delay_ms: DelayMs
    reason: str = ""


class ReturnedOutcome(DeliveryOutcome, frozen=True, tag="returned"):
    """The worker stops before it is done: another worker gets it at once. This counts as no attempt."""

    message: ErrorText = ""


OneOutcome = DoneOutcome | FailedOutcome | RejectedOutcome | SnoozedOutcome | ReturnedOutcome


class NewProgress(In, frozen=True):
    """The progress of a running function."""

    done: int | float
    total: int | float | None = None
    note: Annotated[str, Meta(description="For people; the first 200 characters are kept.")] = ""


class HeldDelivery(In, frozen=True):
    """A delivery that the worker still has."""

    intent_id: KnownId
    delivery: DeliveryNumber
    progress: Annotated[NewProgress, Meta(description="Shown while it runs.")] | None = None


class ClaimedDelivery(Out, frozen=True):
    """One delivery. Its lease runs from now on, until it is settled."""

    intent_id: str
    delivery: Annotated[int, Meta(description="Number of the delivery: settle with it.")]
    attempt: Annotated[int, Meta(description="1 for the first attempt.")]
    max_attempts: int
    task: TaskTarget | None
    entity: EntityTarget | None
    stream: StreamTarget | None
    payload: Annotated[Any, Meta(description="The payload of the intent: any JSON.")]
    headers: Annotated[dict[str, str], Meta(description="Metadata of the caller.")]
    tags: dict[str, str]
    traceparent: str | None
    execute_at: Moment
    deadline: Moment | None
    late_ms: int
    precision_tier: TierName
    timeout_ms: Annotated[int, Meta(description="Maximum duration of the attempt; the worker enforces it.")]
    lease_ms: Annotated[
        int, Meta(description="Settle or extend within this time, or the attempt counts as lost.")
    ]

    def at(self, done: float, total: float | None = None, note: str = "") -> HeldDelivery:
        """The delivery with its progress, to be extended."""
        progress = NewProgress(done=done, total=total, note=note)
        return HeldDelivery(intent_id=self.intent_id, delivery=self.delivery, progress=progress)

    def done(self, result: object = None, *, log: str | None = None) -> DoneOutcome:
        """The outcome of success, with a result that can be written as JSON."""
        text = UNSET if result is None else Raw(msgspec.json.encode(result))
        return DoneOutcome(intent_id=self.intent_id, delivery=self.delivery, log=log, result=text)

    def failed(
        self, message: str, *, kind: str = "failed", delay_ms: int | None = None, log: str | None = None
    ) -> FailedOutcome:
        """The outcome of a failed attempt, which is retried. `delay_ms` replaces the delay of the policy."""
        return FailedOutcome(
            intent_id=self.intent_id,
            delivery=self.delivery,
            log=log,
            kind=kind,
            message=message,
            delay_ms=delay_ms,
        )

    def rejected(self, message: str, *, kind: str = "rejected", log: str | None = None) -> RejectedOutcome:
        """The outcome of work that can never succeed."""
        return RejectedOutcome(
            intent_id=self.intent_id, delivery=self.delivery, log=log, kind=kind, message=message
        )

    def snoozed(self, delay_ms: int, reason: str = "") -> SnoozedOutcome:
        """Run it later; this counts as no attempt."""
        return SnoozedOutcome(
            intent_id=self.intent_id, delivery=self.delivery, delay_ms=delay_ms, reason=reason
        )

    def returned(self, message: str = "") -> ReturnedOutcome:
        """Give it back: the worker stops."""
        return ReturnedOutcome(intent_id=self.intent_id, delivery=self.delivery, message=message)


class ClaimedDeliveries(Out, frozen=True):
    """The claimed deliveries, in order; empty if there were none in time."""

    deliveries: list[ClaimedDelivery]


class SettleDeliveries(In, frozen=True):
    """Reports outcomes."""

    consumer: Consumer
    outcomes: Annotated[list[OneOutcome], Meta(min_length=1, max_length=limits.SETTLE_MAX)]


class SettledDelivery(Out, frozen=True):
    """Whether an outcome counted."""

    intent_id: str
    delivery: int
    counted: Annotated[
        bool,
        Meta(
            description="false: stale. The lease ended, the intent was cancelled, or it was settled before."
        ),
    ]


class SettledDeliveries(Out, frozen=True):
    """The outcomes that counted, in the order of the request."""

    results: list[SettledDelivery]
    counted: int
    stale: int


class ExtendDeliveries(In, frozen=True):
    """Renews leases."""

    consumer: Consumer
    deliveries: Annotated[list[HeldDelivery], Meta(min_length=1, max_length=limits.SETTLE_MAX)]


class ExtendedDelivery(Out, frozen=True):
    """Whether the worker still has a delivery."""

    intent_id: str
    delivery: int
    held: Annotated[bool, Meta(description="false: stop working on it. Its outcome would be stale.")]


class ExtendedDeliveries(Out, frozen=True):
    """The deliveries of the request, in order."""

    results: list[ExtendedDelivery]
