"""Groups: members, and the callback that runs when all have ended."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from duetime import limits
from duetime.wire.intent import AfterOnName, Id, Intent, NewIntent, Status
from duetime.wire.problem import Problem
from duetime.wire.shapes import In, Out

Some = Annotated[list[NewIntent], Meta(max_length=limits.BATCH_CREATE_MAX)]


class NewGroup(In, frozen=True):
    """Members, and the callback that runs when all have ended. Member ids are GROUP.0, GROUP.1 and so on."""

    then: Annotated[NewIntent, Meta(description="The callback: an intent without an id.")]
    group_id: Id | None = None
    members: Some = []
    size: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=limits.GROUP_MEMBERS_MAX,
                description="Total number of members, if they are sent in several requests.",
            ),
        ]
        | None
    ) = None
    on: AfterOnName = "SUCCESS"


class MoreMembers(In, frozen=True):
    """More members of a group."""

    first: Annotated[
        int,
        Meta(ge=0, lt=limits.GROUP_MEMBERS_MAX, description="Number of the first member in this request."),
    ]
    members: Annotated[Some, Meta(min_length=1)]


class MemberError(Out, frozen=True):
    """A member that was refused."""

    intent_id: str
    status: int
    error: Problem


class MadeGroup(Out, frozen=True):
    """The result of adding members, with the first hundred refused members."""

    group_id: str
    then: Intent
    created: int
    existing: int
    failed: int
    errors: list[MemberError]


class Group(Out, frozen=True):
    """The progress of a group."""

    group_id: str
    status: Annotated[Status, Meta(description="Status of the callback.")]
    members: int
    joined: int
    ended: int
    left: int
