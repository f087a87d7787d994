"""Workers that pull: their demand, their heartbeats, their leaving. Owns `state.consumers`."""

from __future__ import annotations

from duetime.kernel.commands.settle import settle
from duetime.kernel.state import State
from duetime.protocol.checkpoint import Consumer
from duetime.protocol.command import Beat, Demand, Leave
from duetime.protocol.outcome import Lost
from duetime.protocol.reply import Reason, Refusal


def demand(state: State, command: Demand) -> Refusal | None:
    """Credits for a lane. Refused for a pushed lane, which needs none."""
    kind = command.lane.partition(":")[0]
    if kind in state.settings.pushed:
        return Refusal(Reason.INVALID_FIELD, f"Lane {command.lane!r} is handed out by the engine itself.")
    consumer = _seen(state, command.consumer)
    lane = state.lanes.get(command.lane) or state.open_lane(command.lane)
    had = consumer.credits.get(command.lane, 0)
    if command.credits > 0:
        consumer.credits[command.lane] = had + command.credits
        if not had:
            lane.ask(command.consumer)
    for track in lane.tracks:
        state.stirred[track] = None
    if command.lane in state.kinds:
        state.eager[command.lane] = None
    state.drop_if_idle(lane)
    return None


def end_claim(state: State, command: Demand) -> None:
    """A claim takes what was ready and no more: its unused credits are void."""
    consumer = state.consumers[command.consumer]
    lane = state.lanes.get(command.lane)
    if lane is not None and consumer.credits.pop(command.lane, 0):
        lane.turns.remove(command.consumer)
        state.drop_if_idle(lane)


def beat(state: State, command: Beat) -> None:
    """A heartbeat: every lease of this consumer restarts (see `advance`)."""
    _seen(state, command.consumer)


def leave(state: State, command: Leave) -> None:
    """A consumer leaves and says so: its deliveries need not wait for their leases to end."""
    consumer = state.consumers.pop(command.consumer, None)
    if consumer is None:
        return
    void_credits(state, consumer)
    held = state.out[command.consumer]
    for intent in sorted(held.values(), key=lambda intent: intent.seq):
        settle(state, intent, Lost(f"{command.consumer!r} left without an outcome"))
    state.out.pop(command.consumer, None)


def drop_connections(state: State) -> None:
    """A new epoch: no consumer is connected yet. Leases run on; a consumer without one is forgotten."""
    for consumer in list(state.consumers.values()):
        void_credits(state, consumer)
        if not state.out[consumer.name]:
            del state.consumers[consumer.name], state.out[consumer.name]


def void_credits(state: State, consumer: Consumer) -> None:
    """Hand it nothing more until it asks again."""
    for name in list(consumer.credits):
        lane = state.lanes[name]
        lane.turns.remove(consumer.name)
        state.drop_if_idle(lane)
    consumer.credits.clear()


def _seen(state: State, name: str) -> Consumer:
    consumer = state.consumers.get(name)
    if consumer is None:
        consumer = state.consumers[name] = Consumer(name, state.at_ms, {})
        state.out.setdefault(name, {})
    consumer.seen_at_ms = state.at_ms
    return consumer
