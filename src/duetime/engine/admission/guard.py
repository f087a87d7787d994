"""Refuse before anything is written: a full engine, a full disk, a lateness bound at risk.

The kernel checks its own limits again when it applies; this is the early refusal, so that nothing refused is
ever on the log.
"""

from __future__ import annotations

from typing import NoReturn

from duetime.engine.admission.catalog import KnownTerms
from duetime.engine.options import EngineOptions
from duetime.errors import Busy, NoSpace
from duetime.kernel.commands.submit import full_lane
from duetime.kernel.queues.lanes import Track
from duetime.kernel.state import State
from duetime.limits import LARGE_PAYLOAD_BYTES, LARGE_PAYLOADS_BYTES_MAX, TIER_NAMES, TIER_WINDOW_MS
from duetime.log.log import DiskLog, Log
from duetime.protocol.command import Command, Patch, Revive
from duetime.protocol.terms import Callback, Terms
from duetime.refusals import error_of
from duetime.store.store import ReadStore

# Turns between two checks of the free space.
_ROOM_EVERY = 256


class Guard:
    """Refuses early."""

    def __init__(self, log: Log, store: ReadStore, state: State, options: EngineOptions) -> None:
        self._disk = log if isinstance(log, DiskLog) else None
        self._store = store
        self._state = state
        self._options = options
        self._turns = 0
        self._room: int | None = None

    def admit_one(self, known: KnownTerms) -> None:
        """Raise if one more intent on these terms cannot be accepted now. Checked once per turn."""
        if known.admitted != self._turns:
            self.admit((known.terms,), 1)
            known.admitted = self._turns

    def admit(self, terms: tuple[Terms, ...], count: int) -> None:
        """Raise if this many intents cannot be accepted now."""
        free = self._room
        if free is not None and free < self._options.disk_reserve_bytes:
            self._look()
            if self._room is not None and self._room < self._options.disk_reserve_bytes:
                raise NoSpace(
                    f"{self._room} bytes are free; {self._options.disk_reserve_bytes} are reserved"
                    " for accepted work."
                )
        pending_max = self._state.settings.pending_max
        if self._state.live() + count > pending_max:
            raise Busy(
                f"{self._state.live()} intents are pending; {count} more would exceed"
                f" the limit of {pending_max}.",
                waitMs=1000,
            )
        for each in terms:
            self._check_lane(each)

    def admit_large(self, payloads: int) -> None:
        """Raise if no more bytes of large payloads can be accepted now. Small payloads are not affected."""
        held = self._store.large_bytes()
        if payloads and held and held + payloads > LARGE_PAYLOADS_BYTES_MAX:
            raise Busy(
                f"Large payloads use {held} bytes of memory; {payloads} more would exceed the"
                f" limit of {LARGE_PAYLOADS_BYTES_MAX}.",
                hint="Wait until some have run, or store large data elsewhere and send a reference.",
                waitMs=1000,
            )

    def admit_command(self, command: Command) -> None:
        """Raise if the new payload of a command is too large to be accepted now."""
        payload = command.payload if isinstance(command, Patch | Revive) else None
        if payload is not None and len(payload) >= LARGE_PAYLOAD_BYTES:
            self.admit_large(len(payload))

    def after(self) -> None:
        """A turn is done: check the free space every few turns."""
        if self._turns % _ROOM_EVERY == 0:
            self._look()
        self._turns += 1

    def _check_lane(self, terms: Terms) -> None:
        """Raise if a lane is full now. The kernel counts exactly, item by item, when it applies."""
        state = self._state
        refusal = full_lane(state, terms, state.lanes.get(terms.lane))
        if refusal is not None:
            raise error_of(refusal, waitMs=1000)

    # Lateness. The first in line shows how late the next one will be.

    def late_ms(self, terms: Terms, now_ms: int) -> int:
        """How late a callback on these terms would be now; 0 while its tier's bound can be kept."""
        if not self._options.lateness_guard or type(terms.target) is not Callback:
            return 0  # the lateness of tasks and messages depends on their workers
        late_ms = max(self.behind_ms(terms.tier, now_ms), self._lane_behind_ms(terms, now_ms))
        return late_ms if late_ms > TIER_WINDOW_MS[terms.tier] else 0

    def refuse_late(self, terms: Terms, late_ms: int) -> NoReturn:
        """Refuse new work that would be too late."""
        name, window_ms = TIER_NAMES[terms.tier], TIER_WINDOW_MS[terms.tier]
        raise Busy(
            f"{name} is {late_ms} ms late, more than its bound of {window_ms} ms.",
            hint="Wait and send it again, give the tier more permits, or use a lower tier.",
            waitMs=late_ms,
        )

    def behind_ms(self, tier: int, now_ms: int) -> int:
        """How late the first in line of a tier is, if it waits for a permit."""
        permits = self._state.tiers.all[tier]
        if permits.used < permits.max or not permits.tracks:
            return 0
        return _behind_ms(permits.tracks[0][2], now_ms)

    def _lane_behind_ms(self, terms: Terms, now_ms: int) -> int:
        lane = self._state.lanes.get(terms.lane)
        if lane is not None:
            for track in lane.tracks:
                if track.tier == terms.tier:
                    return _behind_ms(track, now_ms)
        return 0

    def _look(self) -> None:
        if self._disk is not None:
            self._room = self._disk.room()


def _behind_ms(track: Track, now_ms: int) -> int:
    head = track.head()
    return 0 if head is None else max(0, now_ms - head[2].due_at_ms)
