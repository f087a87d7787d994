"""An app with middleware for functions in other processes, which find it by its module's name."""

from __future__ import annotations

import contextvars

from duetime import App, Middleware, Run

place: contextvars.ContextVar[str] = contextvars.ContextVar("place", default="nowhere")


class Placing(Middleware):
    """One plain hook, and one that is a coroutine."""

    def before_run(self, run: Run) -> None:
        place.set(f"here by {run.state.get('name', 'hook')}")

    async def run_ended(self, run: Run) -> None:
        assert place.get() == "here by hook"


app = App(":memory:")
app.add_middleware(Placing())


@app.task(cpu_bound=True)
def where() -> str:
    return place.get()
