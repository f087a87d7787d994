"""Shares the calls of one host between its endpoints, so that a hanging endpoint does not block the others.

Hosts share the permits of a tier by the same rule: an endpoint starts a call only while its calls in flight
are fewer than a multiple of the free ones, so some stay free for other endpoints. If only one endpoint of a
host is called, it gets all calls while it answers.

A call that may not start waits for another one to end. If its endpoint answers nothing at all, that may
take until the time limit: then the call is returned, and holds no permit while it waits.
"""

from __future__ import annotations

from collections.abc import Callable

from duetime.channels.webhook.calls import CallPlan
from duetime.channels.webhook.gates import Shut
from duetime.limits import ENDPOINT_SILENT_S, HOST_SEVERAL_S, HOST_SHARE, TIER_NAMES, TIER_PERMITS


class _Calls:
    """The calls to one endpoint that are in flight."""

    __slots__ = ("heard_s", "out")

    def __init__(self, now_s: float) -> None:
        self.out = 0
        self.heard_s = now_s
        """When it last answered, or otherwise when the first of these calls began."""


class HostShares:
    """The calls of one host, by endpoint and tier. `slots`: the maximum calls of a tier to the host."""

    __slots__ = ("_calls", "_heard_s", "_newest", "_out", "_several_until_s", "_slots")

    def __init__(self, slots: Callable[[int], int]) -> None:
        self._slots = slots
        self._calls: dict[tuple[str, int], _Calls] = {}
        self._out = [0] * len(TIER_NAMES)
        self._newest = ""
        self._several_until_s = self._heard_s = -HOST_SEVERAL_S

    def seen(self, plan: CallPlan, now_s: float) -> None:
        """A delivery to this endpoint arrived."""
        if plan.endpoint != self._newest:
            if self._newest:
                self._several_until_s = now_s + HOST_SEVERAL_S
            self._newest = plan.endpoint

    def full(self, plan: CallPlan, now_s: float) -> bool:
        """Whether the endpoint has its full share of the host's calls in flight."""
        if self.alone(now_s):
            return False
        calls = self._calls.get(plan.place)
        return calls is not None and self._has_share(calls, plan.tier)

    def alone(self, now_s: float) -> bool:
        """Whether no other endpoint wants a share: one endpoint is called, and it answers."""
        return now_s >= self._several_until_s and now_s - self._heard_s < ENDPOINT_SILENT_S

    def _has_share(self, calls: _Calls, tier: int) -> bool:
        return calls.out >= HOST_SHARE * (self._slots(tier) - self._out[tier])

    def shut(self, plan: CallPlan, now_s: float) -> Shut | None:
        """Why a call must wait whose endpoint has its full share in flight and has long not answered."""
        calls = self._calls[plan.place]
        silent_s = now_s - calls.heard_s
        if silent_s < ENDPOINT_SILENT_S:
            return None
        slots = self._slots(plan.tier)
        text = (
            f"{plan.endpoint} has {calls.out} calls under way and has answered none for {silent_s:.0f} s;"
            f" the rest of the {slots} calls of its host is left to others, and it was not called"
        )
        return Shut(silent_s, text)  # wait as long as the silence lasted, so that checks become rarer

    def began(self, plan: CallPlan, now_s: float) -> None:
        """A call begins. Report its end with `ended`."""
        calls = self._calls.get(plan.place)
        if calls is None:
            calls = self._calls[plan.place] = _Calls(now_s)
        calls.out += 1
        self._out[plan.tier] += 1

    def ended(self, plan: CallPlan, now_s: float, *, answered: bool) -> None:
        """A call is over. Without an answer it tells nothing about the others."""
        calls = self._calls[plan.place]
        calls.out -= 1
        self._out[plan.tier] -= 1
        if answered:
            calls.heard_s = self._heard_s = now_s
        if not calls.out:
            del self._calls[plan.place]

    def silent(self, now_s: float) -> list[str]:
        """The endpoints that get no more calls until they answer."""
        if self.alone(now_s):
            return []
        return [
            endpoint
            for (endpoint, tier), calls in self._calls.items()
            if now_s - calls.heard_s >= ENDPOINT_SILENT_S and self._has_share(calls, tier)
        ]


def host_share(tier: int) -> int:
    """The number of calls of a tier that one host alone gets, while the tier has its default size."""
    return TIER_PERMITS[tier] * HOST_SHARE // (HOST_SHARE + 1)
