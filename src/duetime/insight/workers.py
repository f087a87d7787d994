"""Finds connected workers that are idle while work waits for them.

Three cases: it sends no heartbeat although it holds deliveries or work waits for it (its process or machine
is stopped); it sends heartbeats, holds nothing and grants no credits; it grants credits and gets no delivery.
"""

from __future__ import annotations

from duetime.channels.pull import Connected
from duetime.duration_text import span
from duetime.engine.reads.reader import Reader
from duetime.limits import WORKER_SILENT_MS
from duetime.timefmt import plural


def idle(reads: Reader, connected: list[Connected]) -> dict[str, str]:
    """The idle workers, each with a description."""
    if not connected or reads.is_draining():
        return {}
    found: dict[str, str] = {}
    for worker in connected:
        words = "" if worker.draining else _idle(reads, worker)
        if words:
            found[worker.name.partition("~")[0]] = words
    return found


def unserved(reads: Reader, connected: list[Connected]) -> dict[str, int]:
    """Entity types with ready messages and no connected worker, each with the number of entities."""
    served = {lane.partition("/")[0] for worker in connected for lane in worker.sources}
    return {
        name: ready
        for name, ready in reads.ready_entities().items()
        if name not in served and name.replace("entities:", "entity:", 1) not in served
    }


def _idle(reads: Reader, worker: Connected) -> str:
    name = repr(worker.name.partition("~")[0])
    ready = [lane for lane in sorted(worker.sources) if reads.has_ready(lane)]
    if worker.silent_ms >= WORKER_SILENT_MS and (worker.held or ready):
        holds = f" and holds {plural(worker.held, 'delivery').replace('deliverys', 'deliveries')}"
        return f"{name} has given no sign of life for {span(worker.silent_ms)}{holds if worker.held else ''}"
    if not ready:
        return ""
    credits = reads.credits(worker.name)
    asks = any(credits.get(lane) for lane in ready)
    if asks and worker.silent_ms < WORKER_SILENT_MS:
        return f"{name} asks for work of {ready[0]}, which is ready, and is handed nothing"
    if not worker.held:
        return f"{name} is connected for {ready[0]}, where work is ready, and asks for nothing"
    return ""
