"""What an outside observer can see of one intent, and of one lane."""

from __future__ import annotations

from duetime.protocol.command import Command, Patch, Revive
from duetime.protocol.intent import Item, Status, Ties
from duetime.protocol.terms import PACKED_LANE, Terms, lane_of

# The minimum number of requests that an intent remembers.
REMEMBERED = 8


class Seen:
    """One intent, as seen from outside."""

    def __init__(self, terms: Terms, item: Item, at_ms: int) -> None:
        self.number = 0
        """Its number in the order of acceptance."""
        self.id = item.id
        self.lane, self.serial, self.tier = terms.lane, terms.serial, terms.tier
        self.guarantee, self.on_interrupt = terms.guarantee, terms.on_interrupt
        self.redelivery = terms.redelivery
        self.limits = terms.limits or ()
        self.share, self.weight = terms.fairness_key or "", terms.fairness_weight
        self.attempts_max = terms.redelivery.max_attempts
        self.execute_at_ms, self.deadline_ms = item.execute_at_ms, item.deadline_ms
        self.created_at_ms = at_ms
        self.finished_at_ms = 0
        self.purged = False
        self.expected_ms = item.expected_ms
        self.key, self.fingerprint, self.after = item.key, item.fingerprint, item.after
        self.after_on = terms.after_on
        ties = item.ties if item.ties is not None else Ties()
        self.claim, self.delay_ms, self.first = ties.claim, ties.delay_ms, ties.first
        self.result: object = None
        self.given: list[tuple[str, object]] | None = None
        """When it was released: the intents it waited for, with their results."""
        self.failed: set[str] = set()
        """Those of them that had failed."""
        self.status: Status | None = None
        self.ends = 0
        """How often it has ended: more than once, if it was revived."""
        self.delivery = self.attempt = 0
        self.not_before_ms = 0
        """No hand-over before this: the end of a retry's or snooze's wait."""
        self.runs = 0
        """Hand-overs that were not given back by a snooze, in this life."""
        self.lost = False
        """Whether the newest attempt of this life that counts was lost."""
        self.permit = -1
        self.holder = ""
        """The consumer of its newest hand-over; empty: the engine itself."""
        self.requests: list[str] = [item.request] if item.request is not None else []

    def requested(self, request: str | None) -> None:
        """A caller's request changed it: it must not be one that it remembers."""
        if request is not None:
            assert request not in self.requests[-REMEMBERED:], f"{self.id!r}: {request!r} was done twice"
            self.requests.append(request)

    def revived(self, command: Revive, at_ms: int) -> None:
        """A dead letter was revived, with the changes of the command."""
        self.attempt = self.runs = self.not_before_ms = 0
        self.lost = False
        self.execute_at_ms = command.execute_at_ms or at_ms
        if command.deadline_ms is not None:
            self.deadline_ms = command.deadline_ms
        elif self.deadline_ms <= at_ms:
            self.deadline_ms = 0
        if command.target is not None:
            self.lane = lane_of(command.target)
            self.serial = self.lane.startswith("entity:")
        if command.redelivery is not None:
            self.redelivery = command.redelivery
        self.attempts_max = self.redelivery.max_attempts

    def waits_in_place(self, command: Command) -> bool:
        """Whether a message that is not due any more keeps its place, as a started one does: the clock
        was set back, and it was ready when it was accepted."""
        patched = isinstance(command, Patch) and command.id == self.id
        return self.serial and self.execute_at_ms <= self.created_at_ms and not patched

    @property
    def packed(self) -> bool:
        """Whether it shares a permit with others."""
        return self.lane.endswith(PACKED_LANE)


class ObservedLane:
    """A lane, as seen from outside."""

    def __init__(self) -> None:
        self.due: dict[str, None] = {}
        self.running: dict[str, None] = {}
        self.holder: str | None = None
