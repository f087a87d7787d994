"""An app whose function writes a line to a file. Workers in other languages have the same function."""

from __future__ import annotations

import os

from duetime import App, current

app = App("http://127.0.0.1:1")


@app.task(name="record", queue="shared")
def record(number: int) -> int:
    now = current()
    with open(os.environ["RUNS"], "a") as file:
        file.write(f"{now.intent_id} {now.delivery}\n")
    return number
