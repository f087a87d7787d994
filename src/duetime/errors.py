"""Every error Duetime raises: a code, a status, whether trying again helps, and what to do.

Errors are named by whose move it is. `Refused`: the caller changes the request. `Unavailable`: ours,
ask again. `Damaged` and `Fatal`: nobody's, the engine stops and a person must look. The docstring's
first line is the title users read; the hint says what to do next.
"""

from __future__ import annotations

from duetime.fault import DuetimeError, Fatal, Refused, Unavailable

# What a caller may do wrong.


class BadRevision(Refused):
    """The expected revision is not a number."""

    code, status = 40001, 400
    hint = 'Give the number that the intent showed: X-Duetime-Expected-Revision: 3, or If-Match: "3".'


class BadQuery(Refused):
    """A query parameter has a value that is not allowed."""

    code, status = 40002, 400
    hint = "Correct the parameter; /docs lists what each route takes."


class MissingParameter(Refused):
    """A parameter is missing."""

    code, status = 40004, 400


class BadHttp(Refused):
    """The request is not HTTP, or not HTTP/1.1."""

    code, status = 40005, 400
    hint = "Look at what the client, or a proxy in between, sends."


class NoToken(Refused):
    """There is no token, or it is not known."""

    code, status = 40101, 401
    hint = "Send it as X-Duetime-Token or Authorization: Bearer; `duetime token new` makes one."


class Forbidden(Refused):
    """The token does not allow this."""

    code, status = 40301, 403
    hint = "Use a token that has the role, or may use the queue, that is named."


class ForeignPage(Refused):
    """A page of another site may not use this server."""

    code, status = 40302, 403
    hint = "Call the API from a program, or from a page of this server (behind a proxy: see server.hosts)."


class ForeignHost(Refused):
    """The Host header names another server."""

    code, status = 40303, 403
    hint = "Use localhost, an address or this machine's name; list other names in the setting server.hosts."


class NoSuchRoute(Refused):
    """There is no such route."""

    code, status = 40402, 404
    hint = "/docs lists every route."


class NoSuchMethod(Refused):
    """The route does not take this method."""

    code, status = 40501, 405
    hint = "The header Allow says which methods it takes."


class NotJson(Refused):
    """The body is not JSON."""

    code, status = 40003, 400


class NoSuchIntent(Refused):
    """There is no intent with this id."""

    code, status = 40401, 404
    hint = "Check the id; finished intents are forgotten after the retention time."


class NoSuchSchedule(Refused):
    """There is no schedule with this id."""

    code, status = 40403, 404
    hint = "`duetime schedules list` shows those that are there."


class KeyFinished(Refused):
    """The idempotency key belongs to an intent that is finished."""

    code, status = 40901, 409
    hint = "Use a new key, or on_duplicate='return' to be given the finished intent."


class KeyHeld(KeyFinished):
    """The unique or collapse key belongs to another intent."""

    hint = "Look at the intent that is named; when it lets go of the key, send the request again."


class RevisionMoved(Refused):
    """The intent was changed by somebody else in the meantime."""

    code, status = 40902, 409
    hint = "Read the intent again and repeat the change on its newest revision."


class KeyReused(Refused):
    """The idempotency key was used before with a different body."""

    code, status = 40903, 409
    hint = "Use a new key for a different request."


class IdExists(Refused):
    """There is already an intent with this id."""

    code, status = 40904, 409
    hint = "Choose another id, or leave it out and let the engine make one."


class TooLarge(Refused):
    """The payload is larger than the limit."""

    code, status = 41301, 413
    hint = "Store large things elsewhere and put their name in the payload."


class NotJsonType(Refused):
    """The body's content type is not JSON."""

    code, status = 41501, 415
    hint = "Send JSON, and say so: curl -H 'content-type: application/json'."


class HeadTooLarge(Refused):
    """The head of the request is too large."""

    code, status = 43101, 431
    hint = "Send fewer or shorter headers; the connection is closed."


class TimeMissing(Refused):
    """Exactly one of executeAt and delayMs must be given."""

    code = 42201


class StateForbids(Refused):
    """The intent's status does not allow this."""

    code = 42204
    hint = "Look at its status: what has ended, or already runs, cannot be changed this way."


class DeadlineTooEarly(Refused):
    """The deadline is before the time of execution."""

    code = 42205


class InThePast(Refused):
    """The time of execution is too far in the past."""

    code = 42206
    hint = "Give a time from now on; a few seconds of delay are forgiven (the setting past_tolerance_ms)."


class NotDeadLettered(Refused):
    """Only dead letters can be revived."""

    code = 42207


class InvalidField(Refused):
    """A field has a value that is not allowed."""

    code = 42208


class BadTarget(Refused):
    """An intent needs exactly one target."""

    code = 42209


class BadUrl(BadTarget):
    """The callback's url cannot be used."""

    hint = "Give an http or https address."


class UnknownTier(Refused):
    """There is no such precision tier."""

    code = 42210
    hint = "The tiers are ULTRA, FAST, HIGH, STANDARD and ECONOMY."


class NotPatchable(Refused):
    """The intent's status does not allow it to be changed."""

    code = 42211


class UnknownTask(Refused):
    """No task with this name is registered."""

    code = 42208
    hint = "Register the function with @app.task before it is scheduled or the app is started."


class BadConfig(Refused):
    """The configuration cannot be used."""

    code = 42208
    hint = "`duetime config show` lists every setting with its value and where it came from."


# What the engine cannot take just now.


class Busy(Unavailable):
    """The engine has as much waiting work as it may hold, or cannot keep its lateness bound."""

    code, status = 42900, 429
    hint = "Wait and send it again; nothing was stored."


class RateLimited(Busy):
    """Too many requests in too short a time."""

    code = 42901


class LaneFull(Busy):
    """The lane holds as many waiting intents as it may."""

    code = 42902


class EntityFull(Busy):
    """The entity has too many waiting messages, or there are too many live entities."""

    code = 42903


class NotReady(Unavailable):
    """The engine is still starting."""

    code, status = 50304, 503


class Closed(Unavailable):
    """The app is closed."""

    code, status, retryable = 50304, 503, False
    hint = "Use it inside `with app:` or `async with app:`, or call start() first."


class Unreachable(Unavailable):
    """The server cannot be reached."""

    code, status = 50304, 503
    hint = "Start it with `duetime serve`, or correct the address."


class LogUnavailable(Unavailable):
    """The log cannot be written just now."""

    code, status = 50305, 503


class NoSpace(LogUnavailable):
    """The disk is full: new work is refused, what is accepted goes on."""

    hint = "Make room on the disk of the data folder; the engine goes on by itself."


class Exhausted(NoSpace):
    """The system is short of files or memory."""

    hint = "Raise the limit (ulimit -n, LimitNOFILE, memory) or free what is used; then the engine continues."


# What the log tells its writer.


class Moved(DuetimeError):
    """Somebody else wrote at this place of the log, so this writer is not at its tail."""

    code, status = 50305, 503
    hint = "Another engine owns this log now; this one stops writing."


class InDoubt(DuetimeError):
    """The append may or may not have happened."""

    code, status, retryable = 50305, 503, True
    hint = "The engine reads the place it aimed at and finds out."


# What stops the engine.


class Damaged(Fatal):
    """Stored bytes are not what was written."""

    hint = "Restore the file from a backup; `duetime log verify` names every damaged place."


class Mixed(Damaged):
    """The store and the log belong to two different folders."""


class Held(Fatal):
    """Another process holds this data folder."""

    code, status = 50304, 503
    hint = "Stop that process, or have it do the scheduling; one process at a time may hold a folder."


class Denied(Fatal):
    """The data folder cannot be used."""

    hint = "Let the user that runs Duetime read and write the data folder, or name another with --data DIR."


class DiskFailed(Fatal):
    """The disk reported an error."""

    hint = "Check the disk and the system's log; nothing shows that stored data is damaged."


class TooNew(Fatal):
    """The data was written by a newer version of Duetime."""

    hint = "Upgrade Duetime to at least the version that wrote the data."


# What comes back from waiting on an intent.


class NotAcked(DuetimeError):
    """The intent ended without success."""

    code, status = 42204, 422
    hint = "`details['view'].last_error` says more; a dead letter can be revived."


class ResultGone(DuetimeError):
    """The intent ended well, and the time for which its result is shown is over."""

    code, status = 42204, 422
    hint = "Ask for it sooner, or give a longer result_ttl when it is made."


class WaitTimedOut(DuetimeError):
    """The intent did not end within the time waited."""

    code, status, retryable = 50304, 503, True
    hint = "It goes on; wait again, or look at why() to see what it waits for."


def made(name: str, message: str, details: dict[str, object]) -> DuetimeError:
    """The error of this name, with what is known about it. How a refusal becomes an exception."""
    kind: type[DuetimeError] = globals()[name]
    error = kind(message)
    error.details = dict(details)
    return error
