"""`duetime functions`: the functions of a server's workers."""

from __future__ import annotations

from duetime.cli.args import server
from duetime.cli.ui import output
from duetime.wire.function import FunctionList


@server.asks
def functions(ask: server.Ask) -> None:
    """List the functions of the workers, with their parameters and the workers that have them now.

    `--json` includes the JSON Schema that checks payloads when they are submitted.

    Examples:

      duetime functions
    """
    ask.show(lambda client: client.functions(), _table)


def _table(found: FunctionList) -> None:
    rows = [
        (
            each.name if each.entity is None else f"{each.entity}.{each.name}",
            each.queue or "",
            each.signature,
            "yes" if each.parameters is not None else "no",
            len(each.workers),
        )
        for each in found.functions
    ]
    output.table(("function", "queue", "takes", "checked", "workers"), rows, right=("workers",))
