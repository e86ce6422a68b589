"""What a protocol's own tool counts where nothing was read or the call failed: a second score, never in place of ours.

Our score of such a trial is none, with its reason. The tool's is `<metric>_peer`: what it would have printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import structs
from rapidfuzz.distance import Levenshtein

from ..core.errors import UsageError, not_among
from ..core.ids import rng
from ..core.types import BASE_VARIANT, Prediction, Request, Sample, Score
from .headline import PEER
from .text_match import NO_REFERENCE

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


def draw_letter(letters: Sequence[str], sample: str, seed: int = SEED) -> str:
    """Return the letter that stands for a harness's random one: the same for the same sample and seed."""
    return rng(seed, sample, "peer's random letter").choice(list(letters))
