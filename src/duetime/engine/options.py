"""The options of an engine: the kernel's settings and the shell's own."""

from __future__ import annotations

from msgspec import Struct

from duetime import limits
from duetime.kernel.state import State
from duetime.protocol.command import Command, Configure, Resize, Settings


class EngineOptions(Struct, frozen=True, kw_only=True):
    """Defaults are those of `duetime.limits`; `wiring` fills them from the configuration."""

    settings: Settings = Settings()
    permits: tuple[int, ...] = limits.TIER_PERMITS
    horizon_ms: int = limits.HORIZON_MS
    flush_ms: int = limits.FLUSH_MS
    batch_deferred_ms: int = limits.BATCH_DEFERRED_MS
    checkpoint_ms: int = 5_000
    checkpoint_changes: int = limits.CHECKPOINT_CHANGES
    drain_ms: int = 30_000
    disk_reserve_bytes: int = limits.DISK_RESERVE_BYTES
    lateness_guard: bool = False


def settings_commands(state: State, options: EngineOptions) -> list[Command]:
    """Commands for settings that have changed since the state was written."""
    commands: list[Command] = []
    if state.settings != options.settings:
        commands.append(Configure(options.settings))
    for tier, permits in enumerate(options.permits):
        if state.tiers.all[tier].max != permits:
            commands.append(Resize(tier, permits))
    return commands
