"""What tables do not say: a task's protocol, what the protocol's own tool would print, the numbers of suites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def reading_name(results: Mapping[str, Any]) -> str:
    """Return by which reading results were made."""
    return str(results.get("run", {}).get("reading", {}).get("name", "snellen"))


def protocol_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line on the protocol of a task, and one on what its own tool would print."""
    protocol = result.get("protocol")
    if not protocol:
        return
    yield f"Protocol {protocol.get('version') or protocol['name']}, quoted by {result['headline']}."
    if missing := protocol.get("extractor"):
        yield missing["why"]
    if needed := protocol.get("needs_judge"):
        yield _judge_line(needed, result.get("judges", ()))
    if protocol["peer"]:
        yield protocol["peer"]["why"]


def _judge_line(needed: Mapping[str, str], judges: Sequence[Mapping[str, Any]]) -> str:
    """Say that a number is not the official one, and how to get that, or where it stands."""
    asked = next((one for one in judges if one["judge"] == needed["judge"]), None)
    if asked is None:
        return needed["why"]
    where = f"that is the judge's, {asked['metric']} by {asked['model']}"
    return f"{needed['metric']} is a rule's reading, not the official number: {where}."


def suite_lines(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for every suite whose members were measured together."""
    for name, suite in results.get("suites", {}).items():
        if suite["value"] is None:
            present = suite["mean_of_present"]
            mean = "" if present is None else f"; the mean of those present is {present * 100:.2f}"
            yield f"suite {name}: no {suite['name']}, it lacks {'; '.join(suite['lacking'])}{mean}"
            continue
        interval = "" if suite["ci95"] is None else f" [{suite['ci95'][0] * 100:.2f}, {suite['ci95'][1] * 100:.2f}]"
        yield f"suite {name}: {suite['name']} {suite['value'] * 100:.2f}{interval}"
