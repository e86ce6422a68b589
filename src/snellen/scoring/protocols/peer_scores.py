"""What a protocol's own tool counts where nothing was read or the call failed: a second score, never in place of ours.

Our score of such a trial is none, with its reason. The tool's is `<metric>_peer`: what it would have printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import structs
from rapidfuzz.distance import Levenshtein

from ...core.errors import UsageError, not_among
from ...core.ids import rng
from ...core.tasks import Task
from ...core.types import BASE_VARIANT, Prediction, Request, Sample, Score
from ...data.atlas.peer_cards import versioned
from ..aggregates.headline import PEER, headline_metric
from ..scorers.replies import NO_REFERENCE

SEED = 0
OWN_READER = "snellen"
"""What `score_options.reader` is called where a protocol is read by our own rules."""
FALLBACK_WORDS: Mapping[str, str] = {
    "random": "where no option was read, and for failed calls, it draws an option at random (here with a seed)",
    "nearest": "where no option was read it takes the one spelt most like the reply, even like an empty one",
    "wrong": "it counts what it cannot read, and failed calls, as wrong",
    "minus-one": "it counts what it cannot read, and failed calls, as -1 inside the mean",
    "left-out": "it leaves what it cannot read, and failed calls, out of the denominator without saying so",
    "empty-left-out": (
        "it leaves empty replies, and failed calls, out of the denominator without saying so, and counts what else it "
        "cannot read as wrong"
    ),
    "failed-minus-one": "it counts what it cannot read as wrong, and failed calls as -1 inside the mean",
    "by-rule": (
        "it counts what its rule lets pass (a reply that fits several options, or an empty one) as right, a failed "
        "call as an empty reply, and what else it cannot read as wrong"
    ),
}
"""What a card may say a tool does, in words that end a sentence."""
TOOL_COUNTS = "tool_counts"
"""In the detail of a score of ours that is none: what the tool's rule makes of the reply all the same."""
DRAWN_FROM = "drawn_from"
"""In the same place: among what the tool draws, where that is not the options shown."""
ScoreTrial = Callable[[Sample, Request, Prediction, Mapping[str, Any]], Sequence[Score]]


def check_fallback(name: str, where: str) -> None:
    """Refuse a fallback that nobody knows."""
    if name and name not in FALLBACK_WORDS:
        raise UsageError(f"{where}: fallback {not_among(name, sorted(FALLBACK_WORDS), ' is unknown')}")


def score_with_peer(
    fallback: str, score: ScoreTrial, trial: tuple[Sample, Request, Prediction], options: Mapping[str, Any]
) -> list[Score]:
    """Return our scores of a trial and, beside them, the tool's; a failed call has the tool's alone."""
    sample, request, prediction = trial
    if prediction.failure is None:
        own = list(score(sample, request, prediction, options))
        return [*own, *(_as_peer(fallback, one, trial) for one in own)]
    empty = Prediction(prediction.key, text="")
    scores = score(sample, request, empty, options)
    return [_as_peer(fallback, one, (sample, request, empty), failed=True) for one in scores]


def _as_peer(fallback: str, own: Score, trial: tuple[Sample, Request, Prediction], *, failed: bool = False) -> Score:
    sample, request, prediction = trial
    metric = f"{own.metric}{PEER}"
    if own.value is not None or own.reason == NO_REFERENCE:
        return structs.replace(own, metric=metric)
    if _leaves_out(fallback, prediction):
        return structs.replace(own, metric=metric, value=None, reason="left out by the tool")
    if fallback == "minus-one" or (fallback == "failed-minus-one" and failed):
        return Score(own.key, metric, -1.0, None, "fallback", own.reason)
    if TOOL_COUNTS in own.detail:
        return Score(own.key, metric, float(own.detail[TOOL_COUNTS]), None, own.rule, own.reason)
    drawn = _drawn(fallback, own, request, prediction)
    return Score(own.key, metric, float(drawn in sample.answers) if drawn else 0.0, drawn, "fallback", own.reason)


def _leaves_out(fallback: str, prediction: Prediction) -> bool:
    empty = not (prediction.text or "").strip()
    return fallback == "left-out" or (fallback == "empty-left-out" and empty)


def _drawn(fallback: str, own: Score, request: Request, prediction: Prediction) -> str | None:
    """Return the option a tool takes where it read none: a drawn one, or the nearest; None where it takes none."""
    offered = own.detail.get(DRAWN_FROM) or request.shown
    if not offered or fallback not in ("random", "nearest"):
        return None
    if fallback == "nearest":
        reply = (prediction.text or "").strip()
        return min(offered, key=lambda option: Levenshtein.distance(reply, option))
    trial = f"{own.key.sample} {own.key.variant} {own.key.repeat}"
    return draw_letter(offered, own.key.sample if own.key.variant == BASE_VARIANT and not own.key.repeat else trial)


def draw_letter(letters: Sequence[str], sample: str) -> str:
    """Return the letter that stands for a harness's random one: the same for the same sample."""
    return rng(SEED, sample, "peer's random letter").choice(list(letters))


# Our number and the protocol's own beside each other, and one sentence why they differ.

READER = "peer"
"""The scorer that reads as a protocol's tool does."""
EXTRACTOR = "extractor"
"""Of `score_options`: the slot of a model that a tool lets find the answer (`scoring/judges/extractor.py`)."""
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
