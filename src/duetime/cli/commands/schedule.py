"""`duetime schedule`: a new intent for a webhook, a task, a stream or an entity."""

from __future__ import annotations

from duetime.cli.args import options, server, time_args
from duetime.cli.ui import observed, output, render
from duetime.clock import SystemClock
from duetime.duration_text import span
from duetime.timefmt import ms_of
from duetime.wire.intent import Intent


@options.with_options(options.NEW, options.CALLBACK)
@server.asks
def schedule(
    target: options.Target,
    given: options.Given,
    ask: server.Ask,
) -> None:
    """Schedule an intent and print its id. Without --in and --at it is due now.

    Examples:

      duetime schedule https://example.com/hook --in 30s --payload '{"order": 7}'

      duetime schedule task:mail.send@mail --at "tomorrow 9:00 Europe/Paris" --key welcome-7

      duetime schedule entity:Account/42/deposit -p '[[500]]'
    """
    new = options.target_of(target, given) | options.new_fields(given)
    ask.show(lambda client: client.create(**new), _tell)


def _tell(found: Intent) -> None:
    """Print the id as data, and the rest as a message."""
    observed.add(found.intent_id)
    output.text(found.intent_id)
    wait_ms = ms_of(found.execute_at) - SystemClock().now_ms()
    ahead = f"in {span(wait_ms)}" if wait_ms > 0 else "now"
    output.words(
        f"{found.status}: {render.target(found)} at {time_args.shown(found.execute_at)}, {ahead}"
        f" ({found.precision_tier})."
    )
