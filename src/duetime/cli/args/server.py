"""The server options of commands, and a client for one command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Struct

from duetime.cli.args import parameters
from duetime.cli.args.options import option
from duetime.cli.args.parameters import Command, replaced
from duetime.cli.ui import output
from duetime.client.http.client import Client
from duetime.errors import NoToken
from duetime.limits import CLI_TRIES_MAX

T = TypeVar("T")
_GROUP = "Server"

UrlOption = Annotated[
    str | None,
    option(
        "--url", shown="URL", said="Server (default: DUETIME_URL, then http://localhost:7928).", group=_GROUP
    ),
]
TokenOption = Annotated[
    str | None,
    option(
        "--token",
        shown="TOKEN",
        said="Access token (better in DUETIME_TOKEN, where other users cannot see it).",
        group=_GROUP,
    ),
]

NO_TOKEN_HINT = (
    "Pass a token with --token or in DUETIME_TOKEN. "
    "Create one on the server's machine: `duetime token new --data DIR`."
)


class Place(Struct):
    """The default server of commands. The shell sets it."""

    url: str | None = None
    token: str | None = None


default = Place()


class AsSent(Client):
    """Returns responses undecoded, for `--json`: nothing is lost, nothing is added."""

    def read(self, answer: bytes, kind: Any) -> Any:
        return msgspec.Raw(answer)


def client(url: str | None, token: str | None, *, as_sent: bool = False) -> Client:
    kind = AsSent if as_sent else Client
    return kind(
        url if url is not None else default.url,
        token=token if token is not None else default.token,
        tries=CLI_TRIES_MAX,
    )


def ask(
    url: str | None,
    token: str | None,
    action: Callable[[Client], Awaitable[T]],
    *,
    as_sent: bool = False,
) -> T:
    """Run one operation on a server."""

    async def run() -> T:
        async with client(url, token, as_sent=as_sent) as connected:
            return await action(connected)

    try:
        return asyncio.run(run())
    except NoToken as error:
        error.hint = NO_TOKEN_HINT  # the server's hint is for requests, not for commands
        raise


class Ask(Struct, frozen=True):
    """A server, and whether responses are printed as JSON: the options `--url`, `--token`, `--json`."""

    as_json: bool
    url: str | None
    token: str | None

    def __call__(self, action: Callable[[Client], Awaitable[T]], *, as_sent: bool = False) -> T:
        """Run one operation on the server."""
        return ask(self.url, self.token, action, as_sent=as_sent)

    def sent(self, action: Callable[[Client], Awaitable[Any]]) -> bytes:
        """The undecoded response to one request."""
        return bytes(self(action, as_sent=True))

    def show(self, action: Callable[[Client], Awaitable[T]], render: Callable[[T], None]) -> None:
        """Print the response: undecoded with `--json`, otherwise formatted."""
        found = self(action, as_sent=self.as_json)
        output.json(found) if self.as_json else render(found)


_OPTIONS = (
    parameters.option("as_json", output.JsonFlag, False),
    parameters.option("url", UrlOption),
    parameters.option("token", TokenOption),
)


def asks(command: Command) -> Command:
    """Adds the options of a server to a command, which receives the server as `ask`."""
    return replaced(command, "ask", _OPTIONS, lambda values: Ask(**values))
