"""`duetime functions`: the functions of a server's workers."""

from __future__ import annotations

from duetime.cli.args import server
from duetime.cli.ui import output


def functions(
    as_json: output.JsonFlag = False,
    url: server.UrlOption = None,
    token: server.TokenOption = None,
) -> None:
    """List the functions of the workers, with their parameters and the workers that have them now.

    `--json` includes the JSON Schema that checks payloads when they are submitted.

    Examples:

      duetime functions
    """
    found = server.ask(url, token, lambda client: client.functions(), as_sent=as_json)
    if as_json:
        output.json(found)
        return
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
