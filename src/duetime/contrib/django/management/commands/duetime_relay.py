"""`manage.py duetime_relay`: sends committed rows of the outbox to Duetime until it is stopped."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from duetime.client.app.app import App
from duetime.client.worker import app_loader
from duetime.contrib.django import outbox
from duetime.contrib.relay import Relay
from duetime.limits import RELAY_BATCH, RELAY_POLL_S
from duetime.safe_text import log_to_stderr


class Command(BaseCommand):
    """Relays to the App of --app, to the server at --url, or to the backend in TASKS."""

    help = "Send committed rows of the outbox to Duetime. Several relays can run at the same time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--app", metavar="MODULE:VARIABLE", help="an App; if it uses a folder, it also runs the functions"
        )
        parser.add_argument("--url", help="the URL of a server")
        parser.add_argument("--token", help="the server's token (default: DUETIME_TOKEN)")
        parser.add_argument("--tasks", default="default", metavar="ALIAS", help="a backend of TASKS")
        parser.add_argument(
            "--database", help="the database with the outbox (default: the backend's, then `default`)"
        )
        parser.add_argument("--batch", type=int, default=RELAY_BATCH, help="maximum rows per batch")
        parser.add_argument(
            "--poll", type=float, default=RELAY_POLL_S, metavar="SECONDS", help="polling interval"
        )
        parser.add_argument("--once", action="store_true", help="send the waiting rows and exit")
        parser.add_argument("--retry-refused", action="store_true", help="send refused rows again")
        parser.add_argument("--status", action="store_true", help="print the number of rows and exit")

    def handle(self, **options: Any) -> None:
        log_to_stderr()
        app, database = self._app(options)
        database = options["database"] or database
        relay = outbox.relay(app, using=database, batch=options["batch"], poll_s=options["poll"])
        asyncio.run(self._prepare(relay, options))
        if not options["status"]:
            self.stderr.write(f"Relaying to {app.where}.")
            relay.run(once=options["once"])
            self.stdout.write(f"{relay.relayed} relayed, {relay.refused} refused.")

    async def _prepare(self, relay: Relay, options: Mapping[str, Any]) -> None:
        if options["retry_refused"]:
            self.stdout.write(f"{await relay.rows.reopen()} refused rows are sent again.")
        if options["status"]:
            count = await relay.rows.count()
            self.stdout.write(f"{count.waiting} waiting, {count.refused} refused.")
        await relay.rows.close()

    def _app(self, options: Mapping[str, Any]) -> tuple[App, str | None]:
        if options["app"]:
            return app_loader.load(options["app"]), None
        if options["url"]:
            return App(options["url"], token=options["token"]), None
        from duetime.contrib.django.backend import DuetimeBackend
        from duetime.contrib.django.compat import task_backends

        backend = task_backends[options["tasks"]]
        if not isinstance(backend, DuetimeBackend):
            raise CommandError("TASKS does not name Duetime's backend: give --url or --app.")
        return backend.make_app(), backend.database
