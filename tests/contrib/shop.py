"""A shop with an outbox, as a program that can be killed.

`python -m tests.contrib.shop DATABASE SERVER QUEUE DO`: an order and the receipt for it are written in one
transaction. DO is

    sell-and-die     sell three orders, one transaction each, and be killed right behind the last commit
    die-selling      be killed within a transaction, its rows already sent to the database
    relay-and-die    relay, and be killed when the engine has the rows and they are about to be deleted
    relay-on         relay until told to stop; the first look at the table is told with a line
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from duetime import App, Task
from duetime.contrib.sqlalchemy import Outbox

metadata = sa.MetaData()
orders = sa.Table("orders", metadata, sa.Column("number", sa.Integer, primary_key=True))
outbox = Outbox(metadata)


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_deleting(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
    if statement.startswith("DELETE"):
        die()


def tell(*_: Any) -> None:
    print("relaying", flush=True)


def shop_of(server: str, queue: str) -> tuple[App, Task[[int], int]]:
    app = App(server)

    @app.task(name="shop.receipt", queue=queue)
    def receipt(order: int) -> int:
        return order

    return app, receipt


def sell(engine: sa.Engine, receipt: Task[[int], int], count: int, dying: bool = False) -> None:
    """So many orders, one transaction each."""
    for number in range(count):
        with Session(engine) as session, session.begin():
            session.execute(orders.insert().values(number=number))
            outbox.schedule(session, receipt, number)
            if dying:
                session.flush()
                die()


def main(database: str, server: str, queue: str, what: str) -> None:
    engine = sa.create_engine(database)
    app, receipt = shop_of(server, queue)
    if what == "relay-and-die":
        sa.event.listen(engine, "before_cursor_execute", die_deleting)
    if what == "relay-on":
        sa.event.listen(engine, "before_cursor_execute", tell, once=True)
    if what.startswith("relay"):
        outbox.relay(app, engine, batch=10).run(once=what == "relay-and-die")
        return
    sell(engine, receipt, 3, dying=what == "die-selling")
    die()


if __name__ == "__main__":
    main(*sys.argv[1:])
