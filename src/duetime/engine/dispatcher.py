"""Effects go to channels, outcomes come back. Owns the map from targets to channels."""

from __future__ import annotations

from collections.abc import Iterable

from duetime.channels.channel import Channel, PullChannel, Settler
from duetime.engine.reads.meter import Meter
from duetime.protocol.effect import Abort, Deliver, Effect, Voided
from duetime.protocol.outcome import Rejected, Settlement
from duetime.protocol.terms import Target


class Dispatcher:
    """Passes each delivery to the channel of its target."""

    def __init__(self, channels: dict[type[Target], Channel], meter: Meter | None = None) -> None:
        self._by_target = channels
        self._settle: Settler = lambda settlements: None
        self.meter = meter
        # A channel may serve several targets; each channel is opened and closed once.
        self._channels = list({id(channel): channel for channel in channels.values()}.values())

    def open(self, settle: Settler) -> None:
        self._settle = settle
        for channel in self._channels:
            channel.open(settle)

    def act(self, effects: Iterable[Effect]) -> None:
        by_target = self._by_target
        if self.meter is not None:
            effects = list(effects)
            self.meter.acted(effects)
        for effect in effects:
            if type(effect) is Deliver:
                channel = by_target.get(type(effect.terms.target))
                if channel is None:
                    self._refuse(effect)
                else:
                    channel.deliver(effect)
            elif type(effect) is Abort:
                for channel in self._channels:
                    channel.abort(effect)
        for channel in self._channels:
            channel.flush()

    def void(self, voided: Iterable[Voided]) -> None:
        """Consumers lost their credits: tell the channel of each."""
        for channel in self._channels:
            if isinstance(channel, PullChannel):
                for each in voided:
                    channel.void(each)

    def running(self) -> int:
        return sum(channel.running() for channel in self._channels)

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()

    def _refuse(self, delivery: Deliver) -> None:
        kind = type(delivery.terms.target).__name__.lower()
        text = f"this engine has no channel for a {kind}"
        outcome = Rejected("no-channel", text)
        self._settle([Settlement(delivery.id, delivery.delivery, outcome, consumer=delivery.consumer)])
