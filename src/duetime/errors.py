"""Every error that Duetime raises. A class has a code of its own, an HTTP status, `retryable` and a hint.

The base class says who acts next. `Refused`: the caller changes the request. `Unavailable`: the caller sends
the same request again later. `Fatal`: the engine has stopped and a person must look. The first line of the
docstring is the title that users read.

A code is the HTTP status and two digits. Codes are public: a code never changes and is never used for another
class. Clients choose the class by the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Endings of a message that quotes a text with a full stop of its own: f"{path}: {error}."
_DOUBLE_STOPS = ("..", "!.", "?.", "….")


class DuetimeError(Exception):
    """Something went wrong in Duetime."""

    code: int = 50001
    status: int = 500
    retryable: bool = False
    hint: str = "This is a bug in Duetime: please report it with the text above."

    def __init__(self, message: str = "", *, hint: str | None = None, **details: object) -> None:
        self.message = one_stop(message) or self.title()
        self.details = details
        if hint is not None:
            self.hint = hint  # more exact than the hint of the class
        super().__init__(self.message)

    @classmethod
    def title(cls) -> str:
        """What the class means, in one sentence."""
        return (cls.__doc__ or "").partition("\n")[0]

    @property
    def advice(self) -> str:
        """The hint; empty if the message contains it already, because it quotes another error."""
        return "" if self.hint.rstrip(".") in self.message else self.hint

    def __str__(self) -> str:
        return f"{self.message} {self.advice}".strip()


class Refused(DuetimeError):
    """The request cannot be accepted as it is."""

    code, status, retryable = 42200, 422, False
    hint = "Change the request and send it again; nothing was stored."


class Unavailable(DuetimeError):
    """Duetime cannot do this now."""

    code, status, retryable = 50300, 503, True
    hint = "Try again in a moment."


class Fatal(DuetimeError):
    """The engine stopped itself."""

    code, status, retryable = 50002, 500, False
    hint = "The engine has stopped so that it serves no wrong data. Fix the cause, then start it again."


# The caller must change the request.


class BadRevision(Refused):
    """The expected revision is not a number."""

    code, status = 40001, 400
    hint = 'Give the number that the intent showed: X-Duetime-Expected-Revision: 3, or If-Match: "3".'


class BadQuery(Refused):
    """A query parameter has a value that is not allowed."""

    code, status = 40002, 400
    hint = "Correct the parameter; /docs lists the parameters of each route."


class NotJson(Refused):
    """The body is not JSON."""

    code, status = 40003, 400
    hint = "Send JSON in UTF-8; nothing was stored."


class MissingParameter(Refused):
    """A parameter is missing."""

    code, status = 40004, 400
    hint = "Add the parameter; /docs lists the parameters of each route."


class BadHttp(Refused):
    """The request is not HTTP, or not HTTP/1.1."""

    code, status = 40005, 400
    hint = "Check what the client, or a proxy in between, sends."


class NoToken(Refused):
    """The token is missing or unknown."""

    code, status = 40101, 401
    hint = "Send it as X-Duetime-Token or Authorization: Bearer; `duetime token new` creates one."


class Forbidden(Refused):
    """The token does not allow this."""

    code, status = 40301, 403
    hint = "Use a token that has the role, or may use the queue, that the message names."


class ForeignPage(Refused):
    """A web page of another site may not use this server."""

    code, status = 40302, 403
    hint = "Call the API from a program, or from a page of this server (behind a proxy: see server.hosts)."


class ForeignHost(Refused):
    """The Host header names another server."""

    code, status = 40303, 403
    hint = "Use localhost, an address or this machine's name; list other names in the setting server.hosts."


class NoSuchIntent(Refused):
    """There is no intent with this id."""

    code, status = 40401, 404
    hint = "Check the id; finished intents are deleted after the retention time."


class NoSuchRoute(Refused):
    """There is no such route."""

    code, status = 40402, 404
    hint = "/docs lists every route."


class NoSuchSchedule(Refused):
    """There is no schedule with this id."""

    code, status = 40403, 404
    hint = "`duetime schedules list` shows every schedule."


class NoSuchMethod(Refused):
    """The route does not support this method."""

    code, status = 40501, 405
    hint = "The header Allow lists the methods of the route."


class KeyFinished(Refused):
    """The idempotency key belongs to an intent that is finished."""

    code, status = 40901, 409
    hint = "Use a new key, or on_duplicate='return' to get the finished intent."


class RevisionMoved(Refused):
    """The intent or schedule was changed by another request in the meantime."""

    code, status = 40902, 409
    hint = "Read it again and repeat the change on its newest revision."


class KeyReused(Refused):
    """The idempotency key was used before with a different body."""

    code, status = 40903, 409
    hint = "Use a new key for a different request."


class IdExists(Refused):
    """There is already an intent with this id."""

    code, status = 40904, 409
    hint = "Choose another id, or omit it; the engine then generates one."


class KeyHeld(KeyFinished):
    """The unique or collapse key belongs to another intent."""

    code = 40905
    hint = "Check the intent in the message; send the request again when that intent has released the key."


class TooLarge(Refused):
    """The payload is larger than the limit."""

    code, status = 41301, 413
    hint = "Store large data elsewhere and put a reference to it in the payload."


class NotJsonType(Refused):
    """The body's content type is not JSON."""

    code, status = 41501, 415
    hint = "Send JSON with its content type: curl -H 'content-type: application/json'."


class TimeMissing(Refused):
    """Exactly one of executeAt and delayMs must be given."""

    code = 42201
    hint = "Give one of them; nothing was stored."


class StateForbids(Refused):
    """The intent's status does not allow this."""

    code = 42204
    hint = "Check its status: an intent that has ended or already runs cannot be changed this way."


class DeadlineTooEarly(Refused):
    """The deadline is before the time of execution."""

    code = 42205
    hint = "Set a later deadline, or omit it; nothing was stored."


class InThePast(Refused):
    """The time of execution is too far in the past."""

    code = 42206
    hint = "Give a time from now on; a few seconds of delay are tolerated (the setting past_tolerance_ms)."


class NotDeadLettered(Refused):
    """Only dead letters can be revived."""

    code = 42207
    hint = "Check its status; nothing was changed."


class InvalidField(Refused):
    """A field has a value that is not allowed."""

    code = 42208
    hint = "Correct the field and send the request again; nothing was stored."


class BadTarget(Refused):
    """An intent needs exactly one target."""

    code = 42209
    hint = "Correct the target and send the request again; nothing was stored."


class UnknownTier(Refused):
    """There is no such precision tier."""

    code = 42210
    hint = "The tiers are ULTRA, FAST, HIGH, STANDARD and ECONOMY."


class NotPatchable(Refused):
    """The intent's status does not allow a change."""

    code = 42211
    hint = "Only a waiting intent can be changed; check its status."


class UnknownTask(Refused):
    """No task with this name is registered."""

    code = 42214
    hint = "Register the function with @app.task before you schedule it or start the app."


class BadConfig(Refused):
    """The configuration cannot be used."""

    code = 42215
    hint = "`duetime config show` lists every setting with its value and its origin."


class BadUrl(BadTarget):
    """The callback's url cannot be used."""

    code = 42216
    hint = "Give an http or https address."


class HeadTooLarge(Refused):
    """The head of the request is too large."""

    code, status = 43101, 431
    hint = "Send fewer or shorter headers; the connection is closed."


# The same request may succeed later.


class Busy(Unavailable):
    """The engine has reached its limit of pending work, or exceeds its lateness bound."""

    code, status = 42900, 429
    hint = "Wait and send it again; nothing was stored."


class RateLimited(Busy):
    """Too many requests in too short a time."""

    code = 42901
    hint = "Wait for the time in Retry-After, then send it again; nothing was stored."


class LaneFull(Busy):
    """The queue has reached its limit of waiting intents."""

    code = 42902
    hint = "Wait until some have run, and send it again; nothing was stored."


class EntityFull(Busy):
    """The entity has too many waiting messages, or there are too many live entities."""

    code = 42903
    hint = "Wait until some messages have run, and send it again; nothing was stored."


class NotReady(Unavailable):
    """The engine is still starting."""

    code, status = 50304, 503
    hint = "Try again in a moment."


class LogUnavailable(Unavailable):
    """The log cannot be written at the moment."""

    code, status = 50310, 503
    hint = "Try again in a moment."


class Closed(Unavailable):
    """The app is closed."""

    code, status, retryable = 50306, 503, False
    hint = "Use it inside `with app:` or `async with app:`, or call start() first."


class Unreachable(Unavailable):
    """The server cannot be reached."""

    code, status = 50307, 503
    hint = "Start it with `duetime serve`, or correct the address."


class NoSpace(LogUnavailable):
    """The disk is full: new work is refused, accepted work continues."""

    code = 50305
    hint = "Free space on the disk of the data folder; the engine then continues by itself."


class Exhausted(NoSpace):
    """The system is short of files or memory."""

    code = 50311
    hint = "Raise the limit (ulimit -n, LimitNOFILE, memory) or free what is used; then the engine continues."


# The answers of a log to its writer.


class Moved(DuetimeError):
    """Another writer has appended to the log, so this writer is not at its end."""

    code, status = 50312, 503
    hint = "Another engine owns this log now; this one stops writing."


class InDoubt(DuetimeError):
    """The append may or may not have happened."""

    code, status, retryable = 50313, 503, True
    hint = "The engine reads the log at this position to find out."


# The engine has stopped.


class Damaged(Fatal):
    """Stored bytes are not the bytes that were written."""

    code = 50003
    hint = "Restore the file from a backup; `duetime log verify` names every damaged place."


class Mixed(Damaged):
    """The store and the log belong to two different folders."""

    code = 50004
    hint = "Combine the store and the log of the same folder, or of the same backup."


class Denied(Fatal):
    """The data folder cannot be used."""

    code = 50005
    hint = "Let the user that runs Duetime read and write the data folder, or pass another with --data DIR."


class DiskFailed(Fatal):
    """The disk reported an error."""

    code = 50006
    hint = "Check the disk and the system's log; nothing shows that stored data is damaged."


class TooNew(Fatal):
    """The data was written by a newer version of Duetime."""

    code = 50007
    hint = "Upgrade Duetime to at least the version that wrote the data."


class Held(Fatal):
    """Another process holds this data folder."""

    code, status = 50308, 503
    hint = "Stop that process, or schedule through it; only one process at a time may hold a folder."


# Waiting for an intent.


class NotAcked(DuetimeError):
    """The intent ended without success."""

    code, status = 42212, 422
    hint = "See `details['view'].last_error`; a dead letter can be revived."


class ResultGone(DuetimeError):
    """The intent succeeded, but its result is no longer kept."""

    code, status = 42213, 422
    hint = "Read the result sooner, or schedule the intent with a longer result_ttl."


class WaitTimedOut(DuetimeError):
    """The intent did not end within the timeout."""

    code, status, retryable = 50309, 503, True
    hint = "The intent continues; wait again, or call why() to see what it waits for."


EVERY: Final[tuple[type[DuetimeError], ...]] = tuple(
    each for each in list(globals().values()) if isinstance(each, type) and issubclass(each, DuetimeError)
)
BY_CODE: Final[Mapping[int, type[DuetimeError]]] = {each.code: each for each in EVERY}


def one_stop(text: str) -> str:
    """The text without a second full stop at its end."""
    if text.endswith(_DOUBLE_STOPS) and not text.endswith("..."):
        return text[:-1]
    return text[:-1] if text.endswith("....") else text
