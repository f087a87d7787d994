"""Webhooks: an HTTP request for each callback, or one for many of them.

Each host has its own queue, connections and breaker; a failing endpoint is slowed down alone (see
`gates`). Every delivery is in `_open` from the moment it is taken until it has its outcome or is no longer
wanted: the code that removes it from there answers for it, so there is exactly one answer.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import uuid
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from duetime import limits
from duetime.bounded_cache import BoundedCache
from duetime.channels.channel import Settler, Span, Tracer
from duetime.channels.webhook.answers import WebhookResponse, outcome_of, outcomes_of_batch
from duetime.channels.webhook.batch import Batches, Item, array_of
from duetime.channels.webhook.calls import CallPlan, time_limit
from duetime.channels.webhook.gates import Gates, Probes, Shut
from duetime.channels.webhook.host import Host, WebhookCall
from duetime.channels.webhook.secrets import Signers
from duetime.channels.webhook.sender import Sender
from duetime.channels.webhook.shares import HostShares, host_share
from duetime.clock import Clock
from duetime.protocol.effect import Abort, Deliver
from duetime.protocol.outcome import Expired, Failed, Outcome, Rejected, Settlement, Snoozed
from duetime.protocol.terms import Callback, Terms

OnCall = Callable[[str, int, float, str], None]
"""Called after one call: the host, the tier, the seconds it took, and "done" or the kind of failure."""

_logger = logging.getLogger("duetime")

# The wait grows by the first wait after being held back this many times.
_LONGER_EVERY = 8
# The waiting time of a settlement whose delivery was never called.
_NOT_CALLED = -1


class WebhookOptions(Struct, frozen=True, kw_only=True):
    """How webhooks are sent."""

    secret: str = ""
    """Signs every call as Standard Webhooks define; empty: not signed. May be two, separated by a space."""
    secrets_folder: Path | None = None
    """The folder with the secrets of single endpoints."""
    connections_per_host_max: int = limits.CONNECTIONS_PER_HOST
    refuse_link_local: bool = False
    response_bytes_max: int = limits.RESPONSE_BYTES_MAX
    result_bytes_max: int = limits.RESULT_BYTES_MAX
    connect_timeout_ms: int = 10_000
    batch_bytes_max: int = 1024 * 1024
    """A batch is closed before its body grows beyond this: many servers accept this size by default."""
    breaker_failures: int = 20
    """Consecutive failures after which calls to a host, or an endpoint, are held back for a while."""
    breaker_open_ms: int = 5_000
    """How long calls are held back at first."""


class WebhookChannel:
    """Carries callbacks out over HTTP."""

    def __init__(
        self,
        options: WebhookOptions,
        clock: Clock,
        *,
        tls: ssl.SSLContext | None = None,
        tracer: Tracer | None = None,
        on_call: OnCall | None = None,
        slots: Callable[[int], int] = host_share,
    ) -> None:
        """`slots`: the maximum number of concurrent calls of a tier to one host."""
        self._options = options
        self._clock = clock
        self._tls = tls
        self._tracer = tracer
        self._on_call = on_call
        self._signers = Signers(options.secret, clock, options.secrets_folder)
        self._slots = slots
        self._connect_s = options.connect_timeout_ms / 1000
        self._plans = BoundedCache[int, tuple[Terms, CallPlan]](limits.CALL_PLANS_KEPT)
        self._hosts: dict[str, Host] = {}
        self._gates = Gates(options.breaker_failures, options.breaker_open_ms / 1000)
        self._open: dict[tuple[str, int], WebhookCall | None] = {}
        self._touched: set[Host] = set()
        self._outcomes: list[Settlement] = []
        self._now_s: float | None = None
        """The time of this turn; None until it is needed."""
        self._sender: Sender | None = None
        self._closed = False

    def open(self, settle: Settler) -> None:
        self._settle = settle
        self._loop = asyncio.get_running_loop()
        options = self._options
        self._sender = Sender(options.refuse_link_local, options.response_bytes_max, self._tls)
        self._batches = Batches(self._send_batch, options.batch_bytes_max)

    def deliver(self, delivery: Deliver) -> None:
        place = (delivery.id, delivery.delivery)
        if self._closed or place in self._open:
            return
        self._open[place] = None
        try:
            known = self._plans.get(id(delivery.terms))
            plan = known[1] if known is not None else self._plan(delivery.terms)
            if plan.problem is not None:
                self._end(delivery, plan.problem)
                return
            now_s = self._now_s
            if now_s is None:
                now_s = self._now_s = self._loop.time()
            if plan.batch:
                self._batches.add(plan, delivery, now_s)
            else:
                item = (delivery, b"", now_s)
                host = self._host(plan, now_s)
                shut = self._gates.shut(host.breaker, plan.origin, plan.endpoint, now_s)
                if shut is None and host.shares.full(plan, now_s):
                    shut = host.shares.shut(plan, now_s)
                if shut is not None:
                    self._hold_back(shut, [item])  # at once: it holds no permit while it waits
                    return
                call = self._open[place] = WebhookCall(plan, [item])
                host.queue.append(call)
                self._touched.add(host)
        except Exception as error:
            self._end(delivery, _bug(delivery, error))

    def flush(self) -> None:
        self._now_s = None
        for host in self._touched:
            host.start()
        self._touched.clear()

    def abort(self, abort: Abort) -> None:
        call = self._open.pop((abort.id, abort.delivery), None)
        if call is not None and call.task is not None and not call.plan.batch:
            call.task.cancel()

    def running(self) -> int:
        return len(self._open) + len(self._outcomes)

    def left_alone(self) -> list[str]:
        """The hosts and endpoints whose calls are held back."""
        hosts = [origin for origin, host in self._hosts.items() if host.breaker.is_open]
        slowed = self._gates.slowed()
        for host in self._hosts.values():
            slowed += [each for each in host.shares.silent(self._loop.time()) if each not in slowed]
        return hosts + slowed

    async def close(self) -> None:
        self._closed = True
        self._open.clear()
        self._outcomes.clear()
        if self._sender is None:  # it was never opened
            return
        self._batches.clear()
        runners = [runner for host in self._hosts.values() for runner in host.close()]
        if runners:
            await asyncio.wait(runners, timeout=limits.CHANNEL_CLOSE_S)
        await self._sender.close()

    # Taking deliveries.

    def _plan(self, terms: Terms) -> CallPlan:
        if type(terms.target) is not Callback:
            raise TypeError(f"a webhook cannot deliver to {terms.target!r}")
        plan = CallPlan(terms, terms.target, self._connect_s, self._options.refuse_link_local)
        self._plans.keep(id(terms), (terms, plan))
        return plan

    def _host(self, plan: CallPlan, now_s: float) -> Host:
        host = self._hosts.get(plan.origin)
        if host is None:
            if len(self._hosts) >= limits.HOSTS_KEPT:
                self._forget_hosts()
            connections = self._options.connections_per_host_max
            shares = HostShares(lambda tier: min(connections, self._slots(tier)))
            host = Host(plan.origin, connections, self._gates.breaker(), shares, self._carry)
            self._hosts[plan.origin] = host
        host.used_s = now_s
        host.shares.seen(plan, now_s)
        return host

    def _forget_hosts(self) -> None:
        """Forget the quarter of the hosts that were idle for longest."""
        idle = sorted((host for host in self._hosts.values() if host.idle), key=lambda host: host.used_s)
        for host in idle[: limits.HOSTS_KEPT // 4]:
            del self._hosts[host.origin]

    def _send_batch(self, plan: CallPlan, items: list[Item]) -> None:
        call = WebhookCall(plan, items)
        host = self._host(plan, self._loop.time())
        host.queue.append(call)
        host.start()

    # Making a call, in one of its host's runners.

    async def _carry(self, host: Host, call: WebhookCall, runner: asyncio.Task[None]) -> None:
        """Carry out one call: each of its deliveries that is still wanted gets its outcome."""
        try:
            items = self._wanted(call.items)
            if not items:
                return
            plan, now_s = call.plan, self._loop.time()
            go: Shut | Probes | None
            if host.shares.full(plan, now_s):
                go = host.shares.shut(plan, now_s)
            else:
                go = self._gates.admit(host.breaker, plan.origin, plan.endpoint, now_s)
            if go is None:
                host.put_aside(call)
            elif isinstance(go, Shut):
                self._hold_back(go, items)
            else:
                call.task = runner
                await self._exchange(host, plan, items, go)
        except Exception as error:
            outcome = _bug(call.items[0][0], error)
            for item in call.items:
                self._end(item[0], outcome)
        finally:
            call.task = None

    def _wanted(self, items: list[Item]) -> list[Item]:
        """The deliveries that were not aborted while they waited, and whose deadline has not passed."""
        now_ms = self._clock.now_ms()
        wanted = []
        for item in items:
            delivery = item[0]
            if (delivery.id, delivery.delivery) not in self._open:
                continue
            if 0 < delivery.deadline_ms <= now_ms:
                self._end(delivery, Expired("the deadline passed before it was sent"))
                continue
            wanted.append(item)
        return wanted

    def _hold_back(self, shut: Shut, items: list[Item]) -> None:
        for delivery, _, _ in items:
            held = delivery.delivery - delivery.attempt  # how often it was held back, or snoozed, before
            longer = min(1 + held / _LONGER_EVERY, limits.HELD_BACK_FACTOR_MAX)
            spread = 1 + random.random()  # so that they do not come back together
            self._end(delivery, Snoozed(int(1000 * shut.wait_s * longer * spread), shut.text))

    async def _exchange(self, host: Host, plan: CallPlan, items: list[Item], probes: Probes) -> None:
        began_s = ended_s = self._loop.time()
        first = items[0][0]
        span: Span | None = None
        outcome: Outcome = Failed("cancelled", "it was stopped on the way")
        answer: WebhookResponse | Failed | Rejected | None = None
        host.shares.began(plan, began_s)
        try:
            more: dict[str, str] = {}
            if self._tracer is not None:
                span = self._tracer(first)
                if span.traceparent:
                    more["traceparent"] = span.traceparent
            if plan.batch:
                answer = await self._ask_batch(plan, items, more)
            else:
                answer = await self._ask(plan, first, _waited_ms(items[0], began_s), more)
            ended_s = self._loop.time()
            self._gates.ended(host.breaker, plan.endpoint, answer, probes, ended_s)
            outcome = self._answered(plan, items, answer, began_s)
        finally:
            if answer is None:
                self._gates.abandoned(host.breaker, plan.endpoint, probes)
            host.ended(plan, ended_s, answered=isinstance(answer, WebhookResponse))
            if span is not None:
                span.end(outcome)
        if self._on_call is not None:
            self._on_call(host.origin, plan.tier, ended_s - began_s, _kind(answer))

    async def _ask(
        self, plan: CallPlan, delivery: Deliver, waited_ms: int, more: dict[str, str]
    ) -> WebhookResponse | Failed | Rejected:
        assert self._sender is not None
        headers = plan.headers_of(delivery)
        body = plan.body_of(delivery, waited_ms) if plan.sends_body else None
        if more:
            headers.update(more)
        signer = self._signers.of(plan.endpoint)
        if signer is not None:
            headers.update(signer.headers(delivery.id, self._clock.now_ms(), body or b""))
        return await self._sender.send(plan, headers, body, plan.timeout)

    async def _ask_batch(
        self, plan: CallPlan, items: list[Item], more: dict[str, str]
    ) -> WebhookResponse | Failed | Rejected:
        assert self._sender is not None
        headers = plan.headers_of_batch(len(items))
        body = array_of(items)
        if more:
            headers.update(more)
        signer = self._signers.of(plan.endpoint)
        if signer is not None:
            headers.update(signer.headers(f"batch_{uuid.uuid4().hex}", self._clock.now_ms(), body))
        timeout_ms = min(item[0].terms.timeout_ms for item in items)
        return await self._sender.send(plan, headers, body, time_limit(timeout_ms, self._connect_s))

    def _answered(
        self, plan: CallPlan, items: list[Item], answer: WebhookResponse | Failed | Rejected, began_s: float
    ) -> Outcome:
        """Settle each delivery by the answer; returns the outcome of the first."""
        now_ms, first = self._clock.now_ms(), items[0]
        if plan.batch:
            ids = [item[0].id for item in items]
            if isinstance(answer, WebhookResponse):
                outcomes = outcomes_of_batch(answer, ids, now_ms)
            else:
                outcomes = dict.fromkeys(ids, answer)
            self._end_batch(items, outcomes, began_s)
            return outcomes[ids[0]]
        outcome: Outcome
        if isinstance(answer, WebhookResponse):
            outcome = outcome_of(answer, now_ms, self._options.result_bytes_max)
        else:
            outcome = answer
        self._end(first[0], outcome, _waited_ms(first, began_s))
        return outcome

    # Settling: the outcomes of one turn of the loop together.

    def _end(self, delivery: Deliver, outcome: Outcome, waited_ms: int = _NOT_CALLED) -> None:
        place = (delivery.id, delivery.delivery)
        if place not in self._open:  # it is no longer wanted, or has its outcome
            return
        del self._open[place]
        if not self._outcomes:
            self._loop.call_soon(self._report)
        self._outcomes.append(Settlement(*place, outcome, None, "", waited_ms))

    def _end_batch(self, items: list[Item], outcomes: dict[str, Outcome], began_s: float) -> None:
        """The same for all deliveries of a call that was made."""
        ended, taken_s, waited_ms = self._outcomes, -1.0, 0
        if not ended:
            self._loop.call_soon(self._report)
        for delivery, _, item_s in items:
            place = (delivery.id, delivery.delivery)
            if place not in self._open:
                continue
            del self._open[place]
            if item_s != taken_s:  # most came together
                taken_s, waited_ms = item_s, int(1000 * (began_s - item_s))
            ended.append(Settlement(*place, outcomes[delivery.id], None, "", waited_ms))

    def _report(self) -> None:
        outcomes, self._outcomes = self._outcomes, []
        if outcomes:
            self._settle(outcomes)


def _waited_ms(item: Item, began_s: float) -> int:
    """How long a delivery waited here before it was called."""
    return int(1000 * (began_s - item[2]))


def _kind(answer: WebhookResponse | Failed | Rejected) -> str:
    if not isinstance(answer, WebhookResponse):
        return answer.kind
    return "done" if 200 <= answer.status < 300 else "http"


def _bug(delivery: Deliver, error: Exception) -> Outcome:
    _logger.error("Intent %s: its webhook failed with an unexpected error.", delivery.id, exc_info=error)
    return Failed("bug", repr(error))
