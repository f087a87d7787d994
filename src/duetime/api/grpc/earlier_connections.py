"""The connections that a client had before this one, as far as they still hold deliveries.

A client that reconnects gets a new name, and goes on with what it holds. It says what that is: a delivery
that was written to a connection and never arrived must not be kept alive by the client's heartbeats.
"""

from __future__ import annotations

from msgspec.structs import replace

from duetime.channels.pull import StreamChannel
from duetime.engine.reader import Reader
from duetime.protocol.outcome import Lost, Settlement
from duetime.v1 import deliveries_pb2 as pb

_UNHELD = Lost("the connection broke before it arrived")


class Earlier:
    """The names of a client's earlier connections, and what it has of theirs."""

    def __init__(self, names: tuple[str, ...], hello: pb.Hello, reads: Reader) -> None:
        self._names = names
        self._reads = reads
        self._told = hello.HasField("holding")
        """Whether the client said what it has. If not, it keeps no lease alive."""
        self._has = {(each.intent_id, each.delivery) for each in hello.holding.held}

    def names(self) -> tuple[str, ...]:
        """Those that still hold something."""
        if self._names:
            self._names = tuple(name for name in self._names if self._reads.held(name))
        return self._names

    def alive(self) -> tuple[str, ...]:
        """Those for which a sign of life of this client counts."""
        return self.names() if self._told else ()

    def settled(self, settlement: Settlement) -> Settlement:
        """An outcome in the name of the connection that holds its delivery, if this client had that one."""
        for name in self.names():
            intent = self._reads.held(name).get(settlement.id)
            if intent is not None and intent.delivery == settlement.delivery:
                return replace(settlement, consumer=name)
        return settlement

    def unheld(self, channel: StreamChannel) -> list[Settlement]:
        """The end of everything that the client does not have: it never reached it. What was not even written
        is handed back by the channel, without counting as an attempt."""
        found: list[Settlement] = []
        for name in self.alive():
            written = channel.supersede(name)
            for intent in self._reads.held(name).values():
                place = (intent.id, intent.delivery)
                if place not in self._has and (written is None or place in written):
                    found.append(Settlement(*place, _UNHELD, consumer=name))
        return found
