"""Whether an engine runs and accepts requests, and if not, why. Shared by the parts of one engine."""

from __future__ import annotations

from duetime.errors import Closed


class Phase:
    """Created, started, closing, closed; or failed. The engine sets it, its parts read it."""

    def __init__(self) -> None:
        self.accepts = False
        """Whether new requests are accepted."""
        self.started = False
        self.closing = False
        """Draining or closed."""
        self.failure: Exception | None = None
        """Why the engine stopped itself."""

    def start(self) -> None:
        self.started = self.accepts = True

    def drain(self) -> None:
        """Accept no more requests. Reads still work."""
        self.closing, self.accepts = True, False

    def stop(self) -> None:
        self.drain()
        self.started = False

    def fail(self, error: Exception) -> None:
        self.failure, self.accepts = error, False

    def check(self) -> None:
        """Raise the reason if the engine does not run. A draining engine still runs."""
        if self.failure is not None:
            raise self.failure
        if not self.started:
            raise not_running()

    def refusal(self) -> Exception:
        """Why new requests are not accepted."""
        return self.failure if self.failure is not None else not_running()


def not_running() -> Closed:
    return Closed("The engine is not running.")
