"""The functions of workers."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from duetime.wire.shapes import Out


class Function(Out, frozen=True):
    """A function that workers have announced."""

    name: str
    queue: Annotated[str | None, Meta(description="Queue of a task; null for a message to an entity.")]
    entity: Annotated[str | None, Meta(description="Entity type; null for a task.")]
    signature: str
    parameters: Annotated[
        Any,
        Meta(
            description=(
                "JSON Schema of the payload; null if it is unknown, or if workers announce different schemas."
            )
        ),
    ]
    workers: Annotated[list[str], Meta(description="Connected workers that have it.")]


class FunctionList(Out, frozen=True):
    """The functions of all workers, by name."""

    functions: list[Function]
