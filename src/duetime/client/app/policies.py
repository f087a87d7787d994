"""Options with several parts: the retry policy and the unique key. Invalid values are refused immediately."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from duetime.client.app.times import Delay, delay_ms
from duetime.errors import InvalidField, UnknownTier
from duetime.protocol import bounds
from duetime.protocol.terms import Backoff, Claim, Redelivery, Until


class Retry(Struct, frozen=True, kw_only=True):
    """The retry policy: number of attempts, and the delays between them."""

    max_attempts: int = 5
    backoff: str = "exponential"
    initial_delay: Delay = 1
    max_delay: Delay | None = None
    """None: a minute, or the initial delay if that is longer."""
    multiplier: float = 2
    jitter: bool = True

    def __post_init__(self) -> None:
        self.policy()  # errors are raised where it is written

    def policy(self) -> Redelivery:
        initial_ms = delay_ms(self.initial_delay)
        max_ms = max(Redelivery().max_delay_ms, initial_ms)
        if self.max_delay is not None:
            max_ms = delay_ms(self.max_delay)
            if max_ms < initial_ms:
                raise InvalidField(
                    "max_delay is shorter than initial_delay.", hint="Give a longer max_delay."
                )
        if not 1 <= self.multiplier <= 1000:
            raise InvalidField(f"The multiplier {self.multiplier!r} must be from 1 to 1000.")
        policy = Redelivery(
            max_attempts=self.max_attempts,
            backoff=choice(Backoff, self.backoff, "backoff"),
            initial_delay_ms=initial_ms,
            max_delay_ms=max_ms,
            multiplier_percent=round(100 * self.multiplier),
            jitter=self.jitter,
        )
        raise_for(bounds.unreadable(policy, Redelivery) or bounds.redelivery(policy))
        return policy


class Unique(Struct, frozen=True):
    """No other intent with this key `until` this one starts, until it ends (the default), or `lasting` a time
    from its creation, even if it ends earlier."""

    key: str
    until: str | None = None
    lasting: Delay | None = None

    def __post_init__(self) -> None:
        self.claim()  # errors are raised where it is written

    def claim(self) -> Claim:
        until = choice(Until, self.until or ("END" if self.lasting is None else "TIME"), "until")
        if until >= Until.DEBOUNCE or (until is Until.TIME) != (self.lasting is not None):
            raise InvalidField(
                f"until={self.until!r} cannot be combined with lasting={self.lasting!r}.",
                hint='Write until="start", until="end" or lasting="1h".',
            )
        return checked_claim(
            Claim(self.key, until, delay_ms(self.lasting) if self.lasting is not None else 0)
        )


def checked_claim(claim: Claim) -> Claim:
    raise_for(bounds.unreadable(claim, Claim) or bounds.claim(claim))
    return claim


def choice(
    kind: Any, name: str, field: str, error: type[InvalidField] | type[UnknownTier] = InvalidField
) -> Any:
    """A member of an enum by its name, in upper or lower case, with - or _."""
    try:
        return kind[str(name).upper().replace("-", "_")]
    except KeyError:
        names = ", ".join(member.name for member in kind)
        raise error(f"There is no {field} {name!r}.", hint=f"Use one of {names}.") from None


def raise_for(problem: str | None) -> None:
    """The error for an exceeded bound."""
    if problem is not None:
        raise InvalidField(problem)
