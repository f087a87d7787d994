"""What may be said of a new intent on the command line. The help shows them in these groups."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

WHEN: Final = "When"
RETRY: Final = "Retries and timeouts"
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
    option("--payload", "-p", shown="JSON|@FILE|-", said="Payload: JSON, a file, or stdin (-)."),
]
Id = Annotated[str | None, option("--id", shown="ID", said="Intent id (default: generated).")]
Key = Annotated[
    str | None,
    option("--key", shown="KEY", said="Idempotency key: a repeated request returns the same intent."),
]
CollapseKey = Annotated[
    str | None,
    option("--collapse-key", shown="KEY", said="Replaces a waiting intent with the same key.", group=MORE),
]
Collapse = Annotated[
    str | None,
    option(
        "--collapse",
        shown="debounce|throttle",
        said="Time of the new intent: its own (debounce, the default) or that of the replaced one.",
        group=MORE,
    ),
]
Unique = Annotated[
    str | None,
    option(
        "--unique",
        shown="KEY",
        said="If an intent with this key is active, print its id instead of creating one.",
        group=MORE,
    ),
]
UniqueUntil = Annotated[
    str | None,
    option(
        "--unique-until",
        shown="start|end|SPAN",
        said="How long the key is held: until the intent starts, until it ends, or for a time.",
        group=MORE,
    ),
]
Tags = Annotated[list[str] | None, option("--tag", shown="K=V", said="Tag to filter by; may be repeated.")]

In = Annotated[
    str | None, option("--in", shown="SPAN", said='Delay: 30s, 1h30m, "2 d", or seconds.', group=WHEN)
]
At = Annotated[
    str | None,
    option(
        "--at",
        shown="TIME",
        said='Time: 2030-01-31T09:00+01:00, "tomorrow 9:00 Europe/Paris", "friday 17:30", "18:00".',
        group=WHEN,
    ),
]
Deadline = Annotated[
    str | None,
    option(
        "--deadline",
        shown="TIME|SPAN",
        said="Do not run after this: a time, or a span after the intent's own time.",
        group=WHEN,
    ),
]
Tier = Annotated[
    str | None, option("--tier", shown="TIER", said="ULTRA, FAST, HIGH, STANDARD or ECONOMY.", group=WHEN)
]
Priority = Annotated[
    str | None,
    option(
        "--priority",
        shown="SECONDS|HIGH|LOW",
        said="Head start in seconds, HIGH (300) or LOW (-300).",
        group=WHEN,
    ),
]
After = Annotated[
    list[str] | None,
    option("--after", shown="ID", said="Wait for this intent to succeed; may be repeated.", group=WHEN),
]

AfterOn = Annotated[
    str | None,
    option(
        "--after-on",
        shown="success|end",
        said="Wait for success of the --after intents, or for any end.",
        group=WHEN,
    ),
]

Attempts = Annotated[
    int | None, option("--attempts", shown="N", said="Total number of attempts.", group=RETRY, min=1)
]
RetryDelay = Annotated[
    str | None,
    option("--retry-delay", shown="SPAN", said="Delay after the first failed attempt.", group=RETRY),
]
Timeout = Annotated[
    str | None, option("--timeout", shown="SPAN", said="Maximum duration of one attempt.", group=RETRY)
]
ResultTtl = Annotated[
    str | None,
    option("--result-ttl", shown="SPAN", said="How long the result can be read after the end.", group=RETRY),
]
ExpiredAction = Annotated[
    str | None,
    option(
        "--expired-action", shown="DISCARD|DEAD_LETTER", said="What happens at the deadline.", group=RETRY
    ),
]
Guarantee = Annotated[
    str | None,
    option("--guarantee", shown="AT_LEAST_ONCE|AT_MOST_ONCE", said="Delivery guarantee.", group=RETRY),
]

Method = Annotated[
    str | None, option("--method", shown="METHOD", said="HTTP method (default: POST).", group=HOOK)
]
Headers = Annotated[
    list[str] | None,
    option(
        "--header", "-H", shown="NAME: VALUE", said="HTTP header of the webhook; may be repeated.", group=HOOK
    ),
]
Body = Annotated[
    str | None,
    option("--body", shown="JSON|@FILE|-", said="Request body, instead of the default one.", group=HOOK),
]
Batch = Annotated[
    bool, option("--batch", said="Allow sending in one request with other webhooks.", group=HOOK)
]

Ack = Annotated[
    str | None,
    option("--ack", shown="ASYNC|DURABLE", said="Durability before the command returns.", group=MORE),
]
OnDuplicate = Annotated[
    str | None,
    option(
        "--on-duplicate",
        shown="return|reject",
        said="If the key exists: return its intent even if finished, or refuse.",
        group=MORE,
    ),
]
FairnessKey = Annotated[
    str | None,
    option(
        "--fairness-key", shown="KEY", said="Fairness key, such as the tenant: keys take turns.", group=MORE
    ),
]
FairnessWeight = Annotated[
    int | None,
    option("--fairness-weight", shown="N", said="Weight of the fairness key: 1 to 1000.", group=MORE),
]
ShardKey = Annotated[
    str | None,
    option("--shard-key", shown="KEY", said="Stored with the intent; not interpreted yet.", group=MORE),
]
Traceparent = Annotated[
    str | None, option("--traceparent", shown="TRACE", said="W3C trace context to continue.", group=MORE)
]
