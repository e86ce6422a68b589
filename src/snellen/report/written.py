"""Results as people say them: estimates, protocols and suites in words; the same on every page and in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.variants import NEEDS_PICTURE
from ..scoring.aggregates.headline import is_no_share


def number(value: float) -> str:
    """Return a number with as many digits as one can use."""
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def percent_metric(name: str, estimate: Mapping[str, Any]) -> bool:
    """Tell whether a metric is a share that people read in percent."""
    if name == NEEDS_PICTURE:  # below 0 where the picture harms
        return True
    bounds = [estimate.get("value"), *(estimate.get("ci95") or ())]
    return not is_no_share(name) and all(value is None or 0.0 <= value <= 1.0 for value in bounds)


def written(name: str, estimate: Mapping[str, Any]) -> str:
    """Return a value as people say it."""
    value = estimate.get("value")
    if value is None:
        return "–"
    return written_share(value) if percent_metric(name, estimate) else number(value)


def written_share(share: float) -> str:
    """Return a share as people say it."""
    return f"{share * 100:.1f} %"


def written_change(name: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> str:
    """Return the difference of two values of a metric: of shares, in points of a hundred."""
    if old is None or new is None or old.get("value") is None or new.get("value") is None:
        return "–"
    change = new["value"] - old["value"]
    shares = percent_metric(name, old) and percent_metric(name, new)
    return f"{change * 100:+.1f} points" if shares else f"{change:+.3f}"


def read_share(estimate: Mapping[str, Any]) -> float | None:
    """Return which share of what an estimate counts was read; None where it does not tell, or counts nothing."""
    read = estimate.get("read")
    return read["n"] / estimate["n"] if read and estimate["n"] else None


def unread_of(estimate: Mapping[str, Any]) -> int:
    """Return how many of what an estimate counts were not read."""
    read = estimate.get("read")
    return max(0, estimate["n"] - read["n"]) if read else 0


RESTS_ON = ("n", "unread", "lost")
"""What stands beside a value: how many count, how many of these were not read, how many are outside."""


def rests_on(estimate: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return how many replies a figure counts, how many of these were not read, and how many trials are outside."""
    lost = (estimate.get("unscored") or 0) + (estimate.get("failed") or 0)
    return estimate.get("n") or 0, unread_of(estimate), lost


def written_interval(name: str, estimate: Mapping[str, Any], which: str = "ci95") -> str:
    """Return the 95 % interval as people say it, or the `bounds`."""
    bounds = estimate.get(which)
    if not bounds:
        return "–"
    return " – ".join(f"{bound * 100:.1f}" if percent_metric(name, estimate) else number(bound) for bound in bounds)


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
