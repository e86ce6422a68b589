"""Our number and the protocol's own beside each other, and one sentence why they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.tasks import Task
from ..data.foreign.peer_cards import versioned
from .headline import PEER, headline_metric
from .peer_scores import FALLBACK_WORDS, OWN_READER

READER = "peer"
"""The scorer that reads as a protocol's tool does."""
EXTRACTOR = "extractor"
"""Of `score_options`: the slot of a model that a protocol's own tool lets find the answer (`scoring/extractor.py`)."""
WITHOUT_JUDGE = "_without_judge"
"""How metrics end that stand where a judge's would."""


def stated_protocol(task: Task, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a task stands for and, of its protocol, name, version, its tool's number and why that differs."""
    headline = headline_metric(metrics, task.headline) or ""
    if not task.protocol:
        return {"headline": headline}
    peer = peer_beside(task, metrics, headline) if headline else None
    name, asked, rest = task.protocol.partition(",")
    version = versioned(name) + asked + rest
    protocol = {"name": task.protocol, "version": version, "fallback": task.fallback, "peer": peer}
    more = {"needs_judge": judge_needed(task, headline), "extractor": extractor_missing(task, headline)}
    return {"headline": headline, "protocol": protocol | {key: value for key, value in more.items() if value}}


def extractor_missing(task: Task, headline: str) -> dict[str, str] | None:
    """Return the model that the protocol's own tool lets find the answer, which nobody asked here; None without one."""
    slot = task.score_options.get(EXTRACTOR)
    if not slot:
        return None
    what, model = reader_called(task), slot["model"]
    fix = "--extractor MODEL lets a model do so"
    why = f"{headline} is by the {what} without its extractor: {model} would read what its rules do not ({fix})."
    return {"model": model, "called": f"{what} without its extractor", "why": why}


def reader_called(task: Task) -> str:
    """Return what the reader of a task's protocol is called in sentences."""
    return "official reader" if task.protocol.startswith("official") else f"{task.protocol} reader"


def reads_as_its_tool(task: Task) -> bool:
    """Tell whether replies are read as the protocol's tool reads them: no reader of ours, no model that is missing."""
    told = task.score_options
    own = any(told.get(name) == OWN_READER for name in ("reader", "yesno"))
    return (READER in task.scorers or "times" in told) and not own and not told.get(EXTRACTOR)


def judge_needed(task: Task, headline: str) -> dict[str, str] | None:
    """Return who must be asked for a benchmark's own number, and a sentence; None where the rule's number is it."""
    if not headline.endswith(WITHOUT_JUDGE):
        return None
    judge = str(task.score_options.get("judge") or "")
    ask = f"`snellen score RUN --judge {judge or 'NAME'} --judge-model …`"
    what = f"{headline} is a rule's reading, not the official number of {task.title or task.name}"
    why = f"{what}: a judge gives that, {ask}."
    return {"metric": headline, "judge": judge, "why": why}


def headline_note(task: Task, stated: Mapping[str, Any]) -> list[str]:
    """Say that what the benchmark is quoted by could not be computed, and what stands in its place."""
    if not task.headline or stated["headline"] == task.headline:
        return []
    return [f"the benchmark is quoted by {task.headline}, which could not be computed: this is {stated['headline']}"]


def peer_beside(task: Task, metrics: Mapping[str, Any], headline: str) -> dict[str, Any] | None:
    """Return what the protocol's own tool would print, and why it differs; None where nothing tells that."""
    peer = metrics.get(f"{headline}{PEER}")
    if peer is None or not task.fallback or not reads_as_its_tool(task):
        return None
    own = metrics[headline]
    return {
        "metric": f"{headline}{PEER}",
        "value": peer["value"],
        "ci95": peer["ci95"],
        "fallback": task.fallback,
        "why": _sentence(task, own, peer),
    }


def _sentence(task: Task, own: Mapping[str, Any], peer: Mapping[str, Any]) -> str:
    unread = own["n"] - (own.get("read") or own)["n"]
    outside = own["unscored"] + own["failed"]
    tool = f"The tool of protocol {versioned(task.protocol)}"
    if not unread + outside:
        return f"{tool} prints the same: everything was read."
    what = f"{unread} unread and {own['failed']} failed of {own['n'] + outside} {own['unit'] or 'trials'}"
    differs = (
        f"prints {_points(peer)} too, though it counts otherwise"
        if peer["value"] == own["value"]
        else f"prints {_points(peer)} where ours is {_points(own)}"
    )
    return f"{tool} {differs}: {FALLBACK_WORDS[task.fallback]}; here: {what}."


def _points(estimate: Mapping[str, Any]) -> str:
    value = estimate["value"]
    return "nothing" if value is None else f"{100 * value:.2f}" if abs(value) <= 1 else f"{value:.2f}"
