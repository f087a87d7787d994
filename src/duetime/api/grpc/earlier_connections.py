"""The earlier connections of a client that still hold deliveries.

A client that reconnects gets a new name and continues with the deliveries it holds. It lists them, because
its heartbeats must not renew the lease of a delivery that never arrived.
"""

from __future__ import annotations

from msgspec.structs import replace

from duetime.channels.pull import StreamChannel
from duetime.engine.reads.reader import Reader
from duetime.protocol.outcome import Lost, Settlement
from duetime.v1 import deliveries_pb2 as pb

_UNHELD = Lost("the connection broke before it arrived")


class Earlier:
    """The names of a client's earlier connections, and the deliveries that it has of them."""

    def __init__(self, names: tuple[str, ...], hello: pb.Hello, reads: Reader) -> None:
        self._names = names
        self._reads = reads
        self._told = hello.HasField("holding")
        """Whether the client listed its deliveries. If not, its heartbeats renew no earlier lease."""
        self._has = {(each.intent_id, each.delivery) for each in hello.holding.held}

    def names(self) -> tuple[str, ...]:
        """The connections that still hold deliveries."""
        if self._names:
            self._names = tuple(name for name in self._names if self._reads.held(name))
        return self._names

    def alive(self) -> tuple[str, ...]:
        """The connections for which a heartbeat of this client counts."""
        return self.names() if self._told else ()

    def settled(self, settlement: Settlement) -> Settlement:
        """The outcome with the name of the connection that holds its delivery, if it is this client's."""
        for name in self.names():
            intent = self._reads.held(name).get(settlement.id)
            if intent is not None and intent.delivery == settlement.delivery:
                return replace(settlement, consumer=name)
        return settlement

    def unheld(self, channel: StreamChannel) -> list[Settlement]:
        """Outcomes for the deliveries that the client does not have: they never arrived. The channel returns
        those that were not written, without counting an attempt."""
        found: list[Settlement] = []
        for name in self.alive():
            written = channel.supersede(name)
            for intent in self._reads.held(name).values():
                place = (intent.id, intent.delivery)
                if place not in self._has and (written is None or place in written):
                    found.append(Settlement(*place, _UNHELD, consumer=name))
        return found
