"""The settings by section: name, type, default, range, description."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

from duetime import limits

Tier = Literal["ULTRA", "FAST", "HIGH", "STANDARD", "ECONOMY"]
assert get_args(Tier) == limits.TIER_NAMES, "the tiers have one list"


def _number(least: int, most: int, description: str) -> Meta:
    return Meta(ge=least, le=most, description=description)


def _permits(tier: str, window_ms: int) -> Meta:
    return _number(1, limits.PERMITS_MAX, f"Maximum concurrent deliveries of tier {tier} ({window_ms} ms).")


class DataSettings(Struct, frozen=True, kw_only=True):
    """The location of the data."""

    dir: Annotated[str, Meta(description="The data folder, with the log and the store.")] = "duetime-data"


class LogSettings(Struct, frozen=True, kw_only=True):
    """How the log is written, and how much of it is kept."""

    segment_bytes_max: Annotated[
        int, _number(2 * limits.FRAME_BYTES_MAX, 2**31, "A log file is closed at this size.")
    ] = limits.SEGMENT_BYTES_MAX
    history_bytes: Annotated[
        int, _number(0, limits.SETTING_BYTES_MAX, "Log kept before the checkpoint, to replay the past.")
    ] = limits.LOG_HISTORY_BYTES
    flush_ms: Annotated[
        int,
        _number(
            1, limits.MINUTE_MS, "Maximum time until an ASYNC write is synced; power loss may lose this much."
        ),
    ] = limits.FLUSH_MS
    disk_reserve_bytes: Annotated[
        int,
        _number(
            0,
            limits.SETTING_BYTES_MAX,
            "Disk space reserved for accepted work; with less free space, new work is refused.",
        ),
    ] = limits.DISK_RESERVE_BYTES


class StoreSettings(Struct, frozen=True, kw_only=True):
    """Which intents are held in memory, and how often checkpoints are written."""

    horizon_ms: Annotated[
        int, _number(1_000, limits.DAY_MS, "Intents due within this are held in memory, the rest on disk.")
    ] = limits.HORIZON_MS
    checkpoint_ms: Annotated[
        int, _number(100, limits.HOUR_MS, "The longest time between two checkpoints while there are changes.")
    ] = 5_000


class IntentsSettings(Struct, frozen=True, kw_only=True):
    """Defaults of intents, and how long intents are kept."""

    default_tier: Annotated[Tier, Meta(description="Default tier of an intent.")] = "STANDARD"
    payload_bytes_max: Annotated[
        int, _number(1, limits.PAYLOAD_BYTES_MAX, "The largest payload accepted.")
    ] = limits.PAYLOAD_BYTES_MAX
    result_bytes_max: Annotated[int, _number(1, limits.RESULT_BYTES_MAX, "The largest result stored.")] = (
        limits.RESULT_BYTES_MAX
    )
    past_tolerance_ms: Annotated[
        int, _number(0, limits.SETTING_MS_MAX, "A time of execution this far in the past is still accepted.")
    ] = limits.PAST_TOLERANCE_MS
    key_window_ms: Annotated[
        int, _number(0, limits.SETTING_MS_MAX, "How long an idempotency key identifies its intent.")
    ] = limits.KEY_WINDOW_MS
    retention_ms: Annotated[
        int, _number(0, limits.SETTING_MS_MAX, "How long a finished intent can still be read.")
    ] = limits.RETENTION_MS
    dead_letter_retention_ms: Annotated[
        int, _number(0, limits.SETTING_MS_MAX, "How long a dead letter can still be read and revived.")
    ] = limits.DEAD_LETTER_RETENTION_MS
    retention_count: Annotated[
        int,
        _number(
            0,
            limits.SETTING_COUNT_MAX,
            "Maximum number of finished intents kept; the oldest are deleted first.",
        ),
    ] = limits.RETENTION_COUNT


class LimitsSettings(Struct, frozen=True, kw_only=True):
    """Limits beyond which new work is refused (429 with Retry-After)."""

    pending_max: Annotated[
        int, _number(1, limits.SETTING_COUNT_MAX, "Maximum number of unfinished intents.")
    ] = limits.PENDING_MAX
    lane_pending_max: Annotated[
        int, _number(1, limits.SETTING_COUNT_MAX, "Maximum number of unfinished intents in one lane.")
    ] = limits.LANE_PENDING_MAX
    entity_pending_max: Annotated[
        int, _number(1, limits.SETTING_COUNT_MAX, "Maximum messages of one entity, delayed ones included.")
    ] = limits.ENTITY_PENDING_MAX
    entities_max: Annotated[
        int, _number(1, limits.SETTING_COUNT_MAX, "Maximum entities that have messages.")
    ] = limits.ENTITIES_MAX
    lateness_guard: Annotated[
        bool, Meta(description="Refuse new callbacks of a tier that cannot keep its lateness bound.")
    ] = True


class TiersSettings(Struct, frozen=True, kw_only=True):
    """Concurrent deliveries of each tier; idle permits are lent to higher tiers."""

    ultra: Annotated[int, _permits("ULTRA", 10)] = limits.TIER_PERMITS[0]
    fast: Annotated[int, _permits("FAST", 50)] = limits.TIER_PERMITS[1]
    high: Annotated[int, _permits("HIGH", 100)] = limits.TIER_PERMITS[2]
    standard: Annotated[int, _permits("STANDARD", 500)] = limits.TIER_PERMITS[3]
    economy: Annotated[int, _permits("ECONOMY", 1_000)] = limits.TIER_PERMITS[4]

    @property
    def permits(self) -> tuple[int, ...]:
        """In the order of `limits.TIER_NAMES`."""
        return (self.ultra, self.fast, self.high, self.standard, self.economy)


class EngineSettings(Struct, frozen=True, kw_only=True):
    """How this process runs its functions."""

    threads: Annotated[int, _number(1, 1_024, "Threads for tasks that are plain functions.")] = 16
    # A fixed number, not that of the CPUs: a program should behave the same on every machine.
    processes: Annotated[int, _number(0, 256, "Processes for CPU-bound tasks; 0 allows none.")] = 2
    tasks_per_child_max: Annotated[
        int,
        _number(
            0,
            limits.SETTING_COUNT_MAX,
            "Calls after which a process for CPU-bound tasks is replaced; 0: never.",
        ),
    ] = 0
    memory_per_child_bytes_max: Annotated[
        int,
        _number(
            0,
            limits.SETTING_BYTES_MAX,
            "A process with more resident memory is replaced after its call; 0: never.",
        ),
    ] = 0
    drain_ms: Annotated[
        int, _number(0, limits.DAY_MS, "How long a shutdown waits for running deliveries.")
    ] = 30_000


class ServerSettings(Struct, frozen=True, kw_only=True):
    """Listen addresses of `duetime serve`, and its limits."""

    host: Annotated[str, Meta(description="Listen address. A public address requires a token.")] = "127.0.0.1"
    hosts: Annotated[
        str,
        Meta(
            description="Other names of this server, such as a proxy's or a service's, separated by commas. "
            "Requests for any other name are refused; localhost, this machine's name and addresses are known."
        ),
    ] = ""
    port: Annotated[int, _number(0, 65_535, "HTTP port; 0 picks a free one and prints it.")] = (
        limits.HTTP_PORT
    )
    grpc_port: Annotated[int, _number(0, 65_535, "gRPC port; 0 picks a free one and prints it.")] = (
        limits.GRPC_PORT
    )
    request_bytes_max: Annotated[int, _number(1_024, 2**30, "The largest request body accepted.")] = (
        limits.REQUEST_BYTES_MAX
    )
    requests_max: Annotated[int, _number(1, 100_000, "Maximum concurrent requests; more get 429.")] = (
        limits.REQUESTS_MAX
    )
    tls_cert: Annotated[str, Meta(description="A PEM file with the certificate chain; empty: no TLS.")] = ""
    tls_key: Annotated[str, Meta(description="A PEM file with the certificate's private key.")] = ""


class WebhooksSettings(Struct, frozen=True, kw_only=True):
    """How callbacks are sent."""

    secret: Annotated[
        str,
        Meta(
            description="Secret that signs callbacks (Standard Webhooks, whsec_...), or two, separated by a "
            "space, while one replaces the other; empty: no signature."
        ),
    ] = ""
    connections_per_host_max: Annotated[
        int, _number(1, 10_000, "Maximum connections to one host; further calls wait.")
    ] = limits.CONNECTIONS_PER_HOST
    refuse_link_local: Annotated[
        bool,
        Meta(description="Refuse callbacks to link-local addresses and to the metadata services of clouds."),
    ] = True
