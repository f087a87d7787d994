"""Batched callbacks: gathered until a batch is full, or until the tier's linger time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from duetime import limits
from duetime.channels.webhook.calls import CallPlan, GroupKey
from duetime.protocol.effect import Deliver

Item = tuple[Deliver, bytes, float]
"""A delivery, its body, and when it was taken, by the loop's clock."""


class PendingBatch:
    """Deliveries with the same url, method, headers and tier, and their bodies."""

    __slots__ = ("bytes", "items", "plan", "timer")

    def __init__(self, plan: CallPlan) -> None:
        self.plan = plan
        self.items: list[Item] = []
        self.bytes = 0
        self.timer: asyncio.TimerHandle | None = None


class Batches:
    """The groups that are not full yet. A full one, or one whose linger is over, is passed to `send`."""

    def __init__(self, send: Callable[[CallPlan, list[Item]], None], bytes_max: int) -> None:
        self._send = send
        self._bytes_max = bytes_max
        self._loop = asyncio.get_running_loop()
        self._groups: dict[GroupKey, PendingBatch] = {}
        self._newest: tuple[CallPlan | None, PendingBatch | None] = (None, None)
        """The group of the newest delivery, by its plan: the next delivery mostly belongs to the same one."""

    def add(self, plan: CallPlan, delivery: Deliver, now_s: float) -> None:
        """Add a delivery to its group. The linger begins with the group's first delivery."""
        assert plan.group is not None
        body = plan.body_of(delivery)
        newest, group = self._newest
        if newest is not plan:
            group = self._groups.get(plan.group)
            self._newest = plan, group
        if group is not None and group.bytes + len(body) > self._bytes_max:
            self._close(plan.group)
            group = None
        if group is None:
            group = self._groups[plan.group] = PendingBatch(plan)
            linger_s = limits.CALLBACK_LINGER_MS[plan.tier] / 1000
            group.timer = self._loop.call_later(linger_s, self._close, plan.group)
            self._newest = plan, group
        items = group.items
        items.append((delivery, body, now_s))
        group.bytes += len(body)
        if len(items) >= limits.CALLBACK_BATCH_MAX:
            self._close(plan.group)

    def clear(self) -> None:
        """Forget everything."""
        for group in self._groups.values():
            if group.timer is not None:
                group.timer.cancel()
        self._groups.clear()
        self._newest = None, None

    def _close(self, key: GroupKey) -> None:
        group = self._groups.pop(key)
        self._newest = None, None
        if group.timer is not None:
            group.timer.cancel()
        self._send(group.plan, group.items)


def array_of(items: list[Item]) -> bytes:
    """The bodies as one JSON array."""
    return b"[%b]" % b",".join([body for _, body, _ in items])
