"""Celery's settings: those with a meaning here, those without effect, and those that are refused."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from types import ModuleType
from typing import Any

from duetime.contrib.celery.exceptions import ImproperlyConfigured

_logger = logging.getLogger("duetime.celery")

DEFAULTS: Mapping[str, Any] = {
    "accept_content": ("json",),
    "beat_schedule": {},
    "broker_url": None,
    "enable_utc": True,
    "imports": (),
    "include": (),
    "result_accept_content": None,
    "result_backend": None,
    "result_expires": None,
    "result_serializer": "json",
    "task_acks_late": False,
    "task_always_eager": False,
    "task_create_missing_queues": True,
    "task_default_priority": None,
    "task_default_queue": "celery",
    "task_default_rate_limit": None,
    "task_eager_propagates": False,
    "task_ignore_result": False,
    "task_queues": None,
    "task_reject_on_worker_lost": None,
    "task_routes": None,
    "task_serializer": "json",
    "task_soft_time_limit": None,
    "task_time_limit": None,
    "timezone": None,
}
"""The settings with a meaning, with their defaults."""

# Settings of parts that Duetime does not have: broker, result backend, pool, remote control, events. They
# have no effect. The first use of the app writes their names to the log.
_WITHOUT_EFFECT = (
    "broker_", "beat_", "result_", "worker_", "control_", "event_", "redis_", "database_", "cache_",
    "cassandra_", "mongodb_", "elasticsearch_", "couchbase_", "arangodb_", "cosmosdbsql_", "azureblockblob_",
    "gcs_", "s3_", "task_acks_on_", "task_default_", "task_send_sent_event", "task_track_started",
    "task_publish_retry", "task_protocol", "task_remote_tracebacks", "task_repr_maxlevels", "task_store_",
    "task_queue_max_priority", "task_create_missing_queue_", "task_retry_on_worker_lost", "task_compression",
    "task_allow_error_cb_on_chord_header",
)  # fmt: skip

REFUSED: Mapping[str, str] = {
    "beat_scheduler": "Schedules are stored by Duetime: use app.schedules or `duetime schedules`.",
    "security_certificate": "Use TLS and the tokens of the server.",
    "security_cert_store": "Use TLS and the tokens of the server.",
    "security_key": "Use TLS and the tokens of the server.",
    "task_annotations": "Give the options to the decorators of the tasks.",
    "task_inherit_parent_priority": "Give each task its priority.",
    "worker_direct": "Give each worker its own queue with `duetime worker --queues`.",
}
"""Settings whose absence would change what tasks do."""

_OLD_NAMES = {
    "always_eager": "task_always_eager",
    "eager_propagates_exceptions": "task_eager_propagates",
    "task_result_expires": "result_expires",
    "default_queue": "task_default_queue",
    "queues": "task_queues",
    "routes": "task_routes",
    "ignore_result": "task_ignore_result",
    "acks_late": "task_acks_late",
    "celerybeat_schedule": "beat_schedule",
    "celeryd_task_time_limit": "task_time_limit",
    "celeryd_task_soft_time_limit": "task_soft_time_limit",
    "default_rate_limit": "task_default_rate_limit",
}
"""The names of settings before Celery 4, without CELERY_."""

_SERIALIZERS = ("task_serializer", "result_serializer")


class Settings(MutableMapping[str, Any]):
    """`app.conf`: read and written as attributes or as items."""

    def __init__(self, configured: Callable[[], None] | None = None) -> None:
        """`configured` is called before the first read, for a configuration that is loaded late."""
        own = self.__dict__
        own["_values"] = {}
        own["_without_effect"] = set()
        own["_configured"] = configured

    def __getitem__(self, name: str) -> Any:
        configured = self.__dict__.pop("_configured", None)
        if configured is not None:
            configured()
        name = _new_name(name)
        values = self.__dict__["_values"]
        if name == "beat_schedule":
            return values.setdefault(name, {})
        if name not in values and name not in DEFAULTS and name.startswith(_WITHOUT_EFFECT):
            return None
        return values[name] if name in values else DEFAULTS[name]

    def __setitem__(self, name: str, value: Any) -> None:
        name = _new_name(name)
        if name in REFUSED and value:
            raise ImproperlyConfigured(f"{name} is not supported by duetime.contrib.celery. {REFUSED[name]}")
        if name in _SERIALIZERS and value != "json":
            raise ImproperlyConfigured(f"{name}={value!r}: arguments and results are JSON. Use 'json'.")
        if name in ("accept_content", "result_accept_content") and value and "json" not in _contents(value):
            raise ImproperlyConfigured(f"{name}={value!r}: arguments and results are JSON. Add 'json'.")
        if name not in DEFAULTS and name.startswith(_WITHOUT_EFFECT):
            self.__dict__["_without_effect"].add(name)
        self.__dict__["_values"][name] = value

    def __delitem__(self, name: str) -> None:
        del self.__dict__["_values"][_new_name(name)]

    def __iter__(self) -> Iterator[str]:
        return iter({**DEFAULTS, **self.__dict__["_values"]})

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"There is no setting {name!r}.") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def load(self, source: Any, namespace: str | None = None) -> None:
        """Read settings from a module, an object, a mapping or a name of one of these."""
        found = _found(source)
        items = found if isinstance(found, Mapping) else {name: getattr(found, name) for name in dir(found)}
        prefix = f"{namespace.rstrip('_')}_".upper() if namespace else ""
        for name, value in items.items():
            if name.startswith("_") or isinstance(value, ModuleType):
                continue
            if prefix:
                if name.startswith(prefix):
                    self[name.removeprefix(prefix).lower()] = value
            elif _is_setting(_new_name(name)):
                self[name] = value

    def report(self) -> None:
        """Log the settings without effect, once."""
        names = self.__dict__["_without_effect"]
        if names:
            _logger.warning("Settings without effect on Duetime: %s.", ", ".join(sorted(names)))
            names.clear()


def _is_setting(name: str) -> bool:
    return name in DEFAULTS or name in REFUSED or name.startswith(_WITHOUT_EFFECT)


def _new_name(name: str) -> str:
    lower = name.lower()
    if name != lower:
        lower = lower.removeprefix("celery_")
    return _OLD_NAMES.get(lower, lower)


def _contents(value: Any) -> set[str]:
    names = [value] if isinstance(value, str) else value
    return {str(name).removeprefix("application/") for name in names}


def _found(source: Any) -> Any:
    """The object that a text names: `package.module`, `package.module:name` or `package.module.name`."""
    if not isinstance(source, str):
        return source
    module, colon, name = source.partition(":")
    if colon:
        return getattr(importlib.import_module(module), name)
    try:
        return importlib.import_module(source)
    except ModuleNotFoundError as error:
        parent, _, name = source.rpartition(".")
        if not parent or error.name != source:
            raise
        return getattr(importlib.import_module(parent), name)


def from_environment(variable: str, silent: bool) -> str | None:
    """The name of a module of settings, from an environment variable."""
    name = os.environ.get(variable)  # tidy: the program names the variable
    if not name and not silent:
        raise ImproperlyConfigured(f"The environment variable {variable!r} is not set.")
    return name
