"""What may be said of a new intent on the command line. The help shows them in these groups."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

WHEN: Final = "When"
RETRY: Final = "Failing and waiting"
HOOK: Final = "Webhooks"
MORE: Final = "More"


def option(*names: str, shown: str | None = None, said: str, group: str | None = None, **more: Any) -> Any:
    """An option with its help, in a group."""
    return typer.Option(*names, metavar=shown, help=said, rich_help_panel=group, show_default=False, **more)


Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="An http(s) address, task:NAME[@QUEUE], stream:NAME, or entity:TYPE/ID/MESSAGE.",
    ),
]
Payload = Annotated[
    str | None,
    option("--payload", "-p", shown="JSON|@FILE|-", said="What it carries: JSON, a file, or stdin."),
]
Id = Annotated[str | None, option("--id", shown="ID", said="A name of your own.")]
Key = Annotated[str | None, option("--key", shown="KEY", said="The idempotency key: twice is once.")]
CollapseKey = Annotated[
    str | None,
    option(
        "--collapse-key", shown="KEY", said="Takes the place of one with this key that waits.", group=MORE
    ),
]
Collapse = Annotated[
    str | None,
    option(
        "--collapse",
        shown="debounce|throttle",
        said="With its own time (debounce, if not said), or at that of the one it replaces.",
        group=MORE,
    ),
]
Unique = Annotated[
    str | None,
    option(
        "--unique",
        shown="KEY",
        said="Not while another with this key has not ended; its id is printed instead.",
        group=MORE,
    ),
]
UniqueUntil = Annotated[
    str | None,
    option(
        "--unique-until",
        shown="start|end|SPAN",
        said="Until the other starts, ends, or so long after it was made.",
        group=MORE,
    ),
]
Tags = Annotated[
    list[str] | None, option("--tag", shown="K=V", said="To find it by; may be given more than once.")
]

In = Annotated[
    str | None, option("--in", shown="SPAN", said='After this time: 30s, 1h30m, "2 d", seconds.', group=WHEN)
]
At = Annotated[
    str | None,
    option(
        "--at",
        shown="TIME",
        said='At this time: 2030-01-31T09:00+01:00, "tomorrow 9:00 Europe/Paris", "friday 17:30", "18:00".',
        group=WHEN,
    ),
]
Deadline = Annotated[
    str | None,
    option(
        "--deadline",
        shown="TIME|SPAN",
        said="Too late from then on: a time, or a span after its own time.",
        group=WHEN,
    ),
]
Tier = Annotated[
    str | None, option("--tier", shown="TIER", said="ULTRA, FAST, HIGH, STANDARD or ECONOMY.", group=WHEN)
]
Priority = Annotated[
    str | None,
    option("--priority", shown="SECONDS|HIGH|LOW", said="A head start, or less of it.", group=WHEN),
]
After = Annotated[
    list[str] | None, option("--after", shown="ID", said="Not before these have succeeded.", group=WHEN)
]

AfterOn = Annotated[
    str | None, option("--after-on", shown="success|end", said="Which end of those lets it go.", group=WHEN)
]

Attempts = Annotated[int | None, option("--attempts", shown="N", said="Tries in all.", group=RETRY, min=1)]
RetryDelay = Annotated[
    str | None, option("--retry-delay", shown="SPAN", said="The wait after the first failure.", group=RETRY)
]
Timeout = Annotated[str | None, option("--timeout", shown="SPAN", said="For one attempt.", group=RETRY)]
ResultTtl = Annotated[
    str | None, option("--result-ttl", shown="SPAN", said="How long a result is shown.", group=RETRY)
]
ExpiredAction = Annotated[
    str | None,
    option("--expired-action", shown="DISCARD|DEAD_LETTER", said="At its deadline.", group=RETRY),
]
Guarantee = Annotated[
    str | None,
    option("--guarantee", shown="AT_LEAST_ONCE|AT_MOST_ONCE", said="What is promised of it.", group=RETRY),
]

Method = Annotated[str | None, option("--method", shown="METHOD", said="POST, if not said.", group=HOOK)]
Headers = Annotated[
    list[str] | None, option("--header", "-H", shown="NAME: VALUE", said="Sent with it.", group=HOOK)
]
Body = Annotated[
    str | None, option("--body", shown="JSON|@FILE|-", said="Sent instead of the usual one.", group=HOOK)
]
Batch = Annotated[bool, option("--batch", said="May be sent together with others.", group=HOOK)]

Ack = Annotated[
    str | None, option("--ack", shown="ASYNC|DURABLE", said="How safe it is before the answer.", group=MORE)
]
OnDuplicate = Annotated[
    str | None, option("--on-duplicate", shown="return|reject", said="When the key is known.", group=MORE)
]
FairnessKey = Annotated[
    str | None,
    option(
        "--fairness-key", shown="KEY", said="Whose share of the queue it is: keys take turns.", group=MORE
    ),
]
FairnessWeight = Annotated[
    int | None,
    option("--fairness-weight", shown="N", said="How much its key gets: 1 to 1000.", group=MORE),
]
ShardKey = Annotated[str | None, option("--shard-key", shown="KEY", said="Kept with it.", group=MORE)]
Traceparent = Annotated[
    str | None, option("--traceparent", shown="TRACE", said="A W3C trace to go on with.", group=MORE)
]
