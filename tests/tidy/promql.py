"""Reads what a PromQL expression asks for: its metrics, and the labels it looks at. Not a whole parser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from duetime.insight.metric_table import COUNTER, HISTOGRAM, METRICS
from duetime.insight.worker_metrics import WORKER_METRICS

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SPAN = re.compile(r"\[[^\]]*\]")
_SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)?\s*\{([^}]*)\}")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_NAME = re.compile(r"(?<![\w.])([a-zA-Z_:][\w:]*)\s*(\(?)")
_WORDS = {"and", "or", "unless", "offset", "bool", "by", "without", "on", "ignoring"}
# Labels that Prometheus gives to everything it scrapes, and the one of histograms.
SCRAPED = {"instance", "job"}
# Made by Prometheus itself, for each server it asks.
OWN = {"up"}


class Asked(NamedTuple):
    """What one expression needs."""

    metrics: set[str]
    matched: set[tuple[str, str]]
    """(metric, label) of each {label="value"}."""
    grouped: set[str]


def asked(expression: str) -> Asked:
    """The metrics and labels of an expression."""
    text = _SPAN.sub(" ", _STRING.sub('""', expression))
    matched = set()
    for metric, inside in _SELECTOR.findall(text):
        assert metric, f"a selector without a metric in {expression}"
        matched |= {(metric, name) for name in re.findall(r"(\w+)\s*[=!]", inside)}
    text = re.sub(r"\{[^}]*\}", " ", text)
    grouped = {name.strip() for inside in _GROUPING.findall(text) for name in inside.split(",")}
    text = _GROUPING.sub(" ", text)
    names = {name for name, call in _NAME.findall(text) if not call and name not in _WORDS}
    names -= {"offset"} | {name for name in names if re.fullmatch(r"\d.*|e\d+", name)}
    names -= set(re.findall(r"\boffset\s+(\w+)", text))
    return Asked(names, matched, grouped)


def exposed() -> dict[str, set[str]]:
    """Every series that a server or a worker may show, by name, with its labels."""
    return dict(_exposed())


def _exposed() -> Iterator[tuple[str, set[str]]]:
    for spec in (*METRICS, *WORKER_METRICS):
        labels = set(spec.labels) | SCRAPED
        if spec.kind == HISTOGRAM:
            yield f"{spec.name}_bucket", labels | {"le"}
            yield f"{spec.name}_sum", labels
            yield f"{spec.name}_count", labels
        else:
            assert spec.kind != COUNTER or spec.name.endswith("_total")
            yield spec.name, labels


def wrong(expression: str) -> list[str]:
    """What the expression asks for that is not there."""
    found, known = asked(expression), {**exposed(), **dict.fromkeys(OWN, SCRAPED)}
    missing = [f"there is no metric {name}" for name in sorted(found.metrics - set(known))]
    missing += [
        f"{metric} has no label {label}"
        for metric, label in sorted(found.matched)
        if metric in known and label not in known[metric]
    ]
    there = [known[name] for name in found.metrics if name in known]
    missing += [
        f"nothing has the label {label}"
        for label in sorted(found.grouped)
        if not any(label in labels for labels in there)
    ]
    return missing if found.metrics else ["it asks for no metric"]
