"""`self.request`: the running call of a task."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import Any

from duetime.client.app.control import Context
from duetime.timefmt import iso

_HOSTNAME = f"duetime@{socket.gethostname()}"


class Request:
    """The call that a task runs for. Outside a call, its fields have the defaults of Celery."""

    def __init__(
        self,
        task: str,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        context: Context | None = None,
        *,
        retries: int | Callable[[], int] = 0,
        id: str | None = None,
        is_eager: bool = False,
    ) -> None:
        self.task = task
        self.args = args
        self.kwargs = dict(kwargs or {})
        self.is_eager = is_eager
        self.called_directly = context is None and not is_eager
        self.id = context.intent_id if context is not None else id
        self.root_id = self.id
        self.parent_id: str | None = None
        self.group: str | None = None
        self.correlation_id = self.id
        self.hostname = _HOSTNAME
        self.eta = None if context is None else iso(context.execute_at_ms)
        self.expires: str | None = None
        self.headers: dict[str, Any] = {} if context is None else dict(context.headers)
        queue = "" if context is None else context.queue
        self.delivery_info = {
            "exchange": "",
            "routing_key": queue,
            "priority": 0,
            "redelivered": context is not None and context.delivery > 1,
            "is_eager": is_eager,
        }
        self._retries = retries

    @property
    def retries(self) -> int:
        """How often the task asked for a retry. A lost worker does not count."""
        if not isinstance(self._retries, int):
            self._retries = self._retries()
        return self._retries

    def get(self, name: str, default: Any = None) -> Any:
        """A field or a header."""
        return getattr(self, name, self.headers.get(name, default))

    def __getattr__(self, name: str) -> Any:
        headers = self.__dict__.get("headers", {})
        if name in headers:
            return headers[name]
        raise AttributeError(f"self.request has no {name!r} in duetime.contrib.celery.")

    def __repr__(self) -> str:
        return f"<Request: {self.task} {self.id} args={self.args!r} kwargs={self.kwargs!r}>"
