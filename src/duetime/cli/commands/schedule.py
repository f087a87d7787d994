"""`duetime schedule`: a new intent for a webhook, a task, a stream or an entity."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

import msgspec
import typer

from duetime.cli.args import filters, options, server, time_args
from duetime.cli.ui import observed, output, render
from duetime.client.app.times import moment_of
from duetime.client.http.models import Intent
from duetime.client.http.request_types import NewIntent
from duetime.clock import SystemClock
from duetime.duration_text import span
from duetime.errors import InvalidField


def schedule(
    target: options.Target,
    delay: options.In = None,
    at: options.At = None,
    deadline: options.Deadline = None,
    payload: options.Payload = None,
    id: options.Id = None,
    key: options.Key = None,
    tier: options.Tier = None,
    priority: options.Priority = None,
    tag: options.Tags = None,
    after: options.After = None,
    after_on: options.AfterOn = None,
    attempts: options.Attempts = None,
    retry_delay: options.RetryDelay = None,
    timeout: options.Timeout = None,
    result_ttl: options.ResultTtl = None,
    expired_action: options.ExpiredAction = None,
    guarantee: options.Guarantee = None,
    ack: options.Ack = None,
    on_duplicate: options.OnDuplicate = None,
    collapse_key: options.CollapseKey = None,
    collapse: options.Collapse = None,
    unique: options.Unique = None,
    unique_until: options.UniqueUntil = None,
    fairness_key: options.FairnessKey = None,
    fairness_weight: options.FairnessWeight = None,
    shard_key: options.ShardKey = None,
    traceparent: options.Traceparent = None,
    method: options.Method = None,
    header: options.Headers = None,
    body: options.Body = None,
    batch: options.Batch = False,
    as_json: output.JsonFlag = False,
    url: server.UrlOption = None,
    token: server.TokenOption = None,
) -> None:
    """Schedule an intent and print its id. Without --in and --at it is due now.

    Examples:

      duetime schedule https://example.com/hook --in 30s --payload '{"order": 7}'

      duetime schedule task:mail.send@mail --at "tomorrow 9:00 Europe/Paris" --key welcome-7

      duetime schedule entity:Account/42/deposit -p '[[500]]'
    """
    new = target_of(target, method, header, body, batch)
    new |= _times(delay, at, deadline)
    new |= _terms(tier, priority, expired_action, guarantee, ack)
    new |= retry_of(attempts, retry_delay, timeout)
    if result_ttl is not None:
        new["result_ttl_ms"] = time_args.length(result_ttl)
    if payload is not None:
        new["payload"] = read_json(payload, "--payload")
    if tag:
        new["tags"] = filters.tags(tag)
    if after:
        new["after"] = after
    new |= _claim(collapse_key, collapse, unique, unique_until)
    new |= _given(after_on=after_on and after_on.upper(), on_duplicate=on_duplicate and on_duplicate.lower())
    new |= _given(intent_id=id, idempotency_key=key, shard_key=shard_key, traceparent=traceparent)
    new |= _given(fairness_key=fairness_key, fairness_weight=fairness_weight)
    found = server.ask(url, token, lambda client: client.create(**new), as_sent=as_json)
    if as_json:
        output.json(found)
    else:
        _tell(found)


def _given(**values: str | int | None) -> NewIntent:
    """Those of these that were given."""
    return cast(NewIntent, {name: value for name, value in values.items() if value is not None})


def _tell(found: Intent) -> None:
    """What was made: its id as data, the rest in words."""
    observed.add(found.intent_id)
    output.text(found.intent_id)
    wait_ms = round(found.execute_at.timestamp() * 1000) - SystemClock().now_ms()
    ahead = f"in {span(wait_ms)}" if wait_ms > 0 else "now"
    output.words(
        f"{found.status}: {render.target(found)} at {time_args.shown(found.execute_at)}, {ahead}"
        f" ({found.precision_tier})."
    )


def target_of(
    text: str, method: str | None, headers: list[str] | None, body: str | None, batch: bool
) -> NewIntent:
    kind, _, name = text.partition(":")
    if kind in ("http", "https"):
        callback: dict[str, Any] = {"url": text, "batch": batch}
        if method is not None:
            callback["method"] = method.upper()
        if headers:
            callback["headers"] = dict(_header(each) for each in headers)
        if body is not None:
            callback["body"] = read_json(body, "--body")
        return {"callback": callback}
    if method is not None or headers or body is not None or batch:
        raise typer.BadParameter("--method, --header, --body and --batch are for webhooks.")
    if kind == "task" and name:
        task, at, queue = name.rpartition("@")
        return {"task": {"name": task, "queue": queue} if at else {"name": name}}
    if kind == "stream" and name:
        return {"stream": {"name": name}}
    parts = name.split("/")
    if kind == "entity" and len(parts) >= 3 and all(parts):
        return {"entity": {"type": parts[0], "id": "/".join(parts[1:-1]), "message": parts[-1]}}
    raise typer.BadParameter(
        f"{text!r} is not a target. Use https://..., task:NAME[@QUEUE], stream:NAME, entity:TYPE/ID/MESSAGE",
        param_hint="TARGET",
    )


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not (name.strip() and colon):
        raise typer.BadParameter(f"{text!r} does not have the form Name: value", param_hint="--header")
    return name.strip(), value.strip()


def moment_of_options(delay: str | None, at: str | None) -> Any:
    """The moment `--in` or `--at` means."""
    if delay is not None and at is not None:
        raise typer.BadParameter("use only one of --in and --at")
    now_ms = SystemClock().now_ms()
    return moment_of(
        time_args.moment(at, now_ms) if at is not None else now_ms + time_args.length(delay or "0")
    )


def _times(delay: str | None, at: str | None, deadline: str | None) -> NewIntent:
    now_ms = SystemClock().now_ms()
    times: NewIntent = {}
    if at is not None:
        times["execute_at"] = moment_of_options(delay, at)
        own_ms = time_args.moment(at, now_ms)
    else:
        times["delay_ms"] = (
            time_args.length(delay) if delay is not None else 0
        )  # counted by the server's clock
        own_ms = now_ms + times["delay_ms"]
    if deadline is not None:
        try:
            late_ms = own_ms + time_args.length(deadline)
        except InvalidField:
            late_ms = time_args.moment(deadline, now_ms)
        times["deadline"] = moment_of(late_ms)
    return times


def _terms(
    tier: str | None,
    priority: str | None,
    expired_action: str | None,
    guarantee: str | None,
    ack: str | None,
) -> NewIntent:
    terms: NewIntent = {}
    if tier is not None:
        terms["precision_tier"] = tier.upper()
    if priority is not None:
        number = priority.lstrip("+-")
        terms["priority"] = int(priority) if number.isdecimal() else priority.upper()
    if expired_action is not None:
        terms["expired_action"] = _constant(expired_action)
    if guarantee is not None:
        terms["guarantee"] = _constant(guarantee)
    if ack is not None:
        terms["ack_level"] = _constant(ack)
    return terms


def _claim(
    collapse_key: str | None, collapse: str | None, unique: str | None, until: str | None
) -> NewIntent:
    claim: NewIntent = {}
    if collapse_key is not None:
        claim["collapse_key"] = collapse_key
    if collapse is not None:
        claim["collapse"] = _constant(collapse)
    if until is not None and unique is None:
        raise typer.BadParameter("--unique-until requires --unique.")
    if unique is not None:
        said: dict[str, Any] = {"key": unique}
        if until is not None and until.lower() in ("start", "end"):
            said["until"] = until.upper()
        elif until is not None:
            said |= {"until": "TIME", "for_ms": time_args.length(until)}
        claim["unique"] = said
    return claim


def _constant(text: str) -> str:
    return text.upper().replace("-", "_")


def retry_of(attempts: int | None, retry_delay: str | None, timeout: str | None) -> NewIntent:
    terms: NewIntent = {}
    policy: dict[str, Any] = {}
    if attempts is not None:
        policy["max_attempts"] = attempts
    if retry_delay is not None:
        initial_ms = time_args.length(retry_delay)
        policy["initial_delay_ms"] = initial_ms
        policy["max_delay_ms"] = max(initial_ms, 60_000)
    if policy:
        terms["redelivery"] = policy
    if timeout is not None:
        terms["timeout_ms"] = time_args.length(timeout)
    return terms


def read_json(text: str, option: str) -> Any:
    """JSON as given, out of `@FILE`, or from stdin for `-`."""
    try:
        if text == "-":
            written = sys.stdin.buffer.read()
        elif text.startswith("@"):
            written = Path(text[1:]).read_bytes()
        else:
            written = text.encode()
        return msgspec.json.decode(written)
    except OSError as error:
        raise typer.BadParameter(f"{text[1:]} cannot be read: {error.strerror}", param_hint=option) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = f"it is not JSON: {error}. Quote text as JSON: '\"text\"'"
        raise typer.BadParameter(reason, param_hint=option) from None
