"""The project as a program that can be killed: `python -m tests.contrib.project.killed DATABASE DO`.

It writes a group and three tasks in one transaction. DO is

    sell-and-die     and is killed right behind the commit
    die-selling      or before it
    relay-and-die    or it relays, and is killed when the rows are with the engine and about to be deleted
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import django


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_deleting(execute: Any, sql: str, *rest: Any) -> Any:
    if sql.startswith("DELETE"):
        die()
    return execute(sql, *rest)


def watch(connection: Any, **_: Any) -> None:
    connection.execute_wrappers.append(die_deleting)


def main(database: str, what: str) -> None:
    django.setup()
    from django.contrib.auth.models import Group
    from django.core.management import call_command
    from django.db import transaction
    from django.db.backends.signals import connection_created

    from tests.contrib.project.jobs import add

    if what == "relay-and-die":
        connection_created.connect(watch)
        call_command("duetime_relay", "--tasks", database, "--once")
    queue = os.environ["PROJECT_QUEUE"]
    with transaction.atomic(database):
        Group.objects.using(database).create(name=queue)
        for number in range(3):
            add.using(queue_name=queue, backend=database).enqueue(number, 1)
        if what == "die-selling":
            die()
    die()


if __name__ == "__main__":
    main(*sys.argv[1:])
