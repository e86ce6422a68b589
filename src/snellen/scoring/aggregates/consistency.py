"""Chains of questions in, reasoning and consistency out: Rh, Rcot, Ro, Cf, Cb and where chains break.

h: the inference is right; s: every step of the chain is right. Rh = mean h, Rcot = mean s, Ro = mean h·s. The published
numbers of CURE follow the conditional convention, Cf = Ro/Rcot and Cb = Ro/Rh; `over-n` divides by all items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from ...core.counting import CONVENTIONS
from ...core.errors import DataError, UsageError
from ...core.types import Estimate, Prediction, Request, Sample, Score
from ...stats.intervals import Floats, cluster_totals, estimate_mean, estimate_ratio

CHAINS = "chains"
STEPS = "trials of role=step"
"""Units: chains; questions of the chain, each a trial."""
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Chains:
    """One row a chain: was the inference right, which steps were right (padded), how long is it, in which cluster."""

    inference: Flags
    steps: Flags
    """Items × longest chain; what lies beyond a chain's length is ignored."""
    lengths: NDArray[np.int64]
    clusters: NDArray[Any]
    inference_known: Flags
    """Whether the inference counts as right or wrong; a refusal does, as wrong."""
    steps_known: Flags
    steps_failed: Flags
    steps_stored: Flags
    """Which steps were asked: one that fails its chain keeps others from being asked."""
    failed: Flags
    """Whether some question of the chain has no reply: it fails the chain."""
    inference_failed: Flags
    """Whether the inference itself has none: it failed, or was never asked."""

    @property
    def within(self) -> Flags:
        """Return which cells of `steps` are steps."""
        return np.arange(self.steps.shape[1])[None, :] < self.lengths[:, None]

    @property
    def whole(self) -> Flags:
        """Return whether all steps of each chain are right."""
        return np.asarray(np.all(self.steps | ~self.within, axis=1))

    @property
    def known(self) -> dict[str, Flags]:
        """Return which chains each of Rh, Rcot and Ro can be said of: what it looks at is known.

        A failed step fails what looks at steps; an inference that was answered counts in Rh all the same.
        """
        steps = np.asarray(np.all(self.steps_known | ~self.within, axis=1)) & ~self.failed
        return {"Rh": self.inference_known, "Rcot": steps, "Ro": self.inference_known & steps}

    def counted_as(self, *, right: bool) -> Chains:
        """Return the same chains with everything known: what is not, and what has no reply, is right, or wrong."""
        known = (self.inference_known, self.steps_known)
        said = (self.inference & known[0], self.steps & known[1])
        return replace(
            self,
            inference=said[0] | ~known[0] if right else said[0],
            steps=said[1] | ~known[1] if right else said[1],
            inference_known=np.ones_like(known[0]),
            steps_known=np.ones_like(known[1]),
            steps_failed=np.zeros_like(self.steps_failed),
            failed=np.zeros_like(self.failed),
            inference_failed=np.zeros_like(self.failed),
        )


def answered_chains(inference: Flags, steps: Flags, lengths: NDArray[np.int64], clusters: NDArray[Any]) -> Chains:
    """Return chains in which every question was answered and read."""
    nothing = np.zeros_like(inference)
    read = (np.ones_like(inference), np.ones_like(steps))
    return Chains(inference, steps, lengths, clusters, *read, np.zeros_like(steps), read[1], nothing, nothing)


def consistency(chains: Chains, convention: str = "conditional") -> dict[str, Estimate]:
    """Return Rh, Rcot, Ro, Cf, Cb with 95 % intervals; a conditional one that no item qualifies for is None.

    A chain with a question that has no reply is failed where that is looked at: Rh looks at inferences only. One whose
    answers nobody can judge is unscored there.
    """
    if convention not in CONVENTIONS:
        raise UsageError(f"unknown convention {convention!r}: use {' or '.join(CONVENTIONS)}")
    inference, whole = chains.inference.astype(np.float64), chains.whole.astype(np.float64)
    both, known = inference * whole, chains.known
    estimates = {
        "Rh": _over(chains, inference, known["Rh"], chains.inference_failed),
        "Rcot": _over(chains, whole, known["Rcot"], chains.failed),
        "Ro": _over(chains, both, known["Ro"], chains.failed),
    }
    if convention == "over-n":
        return estimates | {"Cf": estimates["Ro"], "Cb": estimates["Ro"]}
    return estimates | {"Cf": _given(chains, both, whole), "Cb": _given(chains, both, inference)}


def _over(chains: Chains, values: Floats, known: Flags, failed: Flags) -> Estimate:
    unscored = int(np.count_nonzero(~known & ~failed))
    lost = int(np.count_nonzero(~known & failed))
    estimate = estimate_mean(values[known], chains.clusters[known], unscored=unscored, failed=lost)
    return structs.replace(estimate, unit=CHAINS)


def _given(chains: Chains, both: Floats, condition: Floats) -> Estimate:
    """Return Σboth/Σcondition; with single items a cluster this is a plain proportion of those that qualify."""
    known = chains.known["Ro"]
    both, condition, clusters = both[known], condition[known], chains.clusters[known]
    if np.unique(clusters).size == clusters.size:
        estimate = estimate_mean(both[condition > 0])
    else:
        sums, sizes = cluster_totals(both, clusters)[0], cluster_totals(condition, clusters)[0]
        qualified = sizes > 0
        estimate = estimate_ratio(sums[qualified], sizes[qualified], bounded=True, n=int(condition.sum()))
    counts = _over(chains, chains.whole.astype(np.float64), known, chains.failed)
    left_out = counts.n - estimate.n
    return structs.replace(estimate, unscored=counts.unscored, failed=counts.failed, left_out=left_out, unit=CHAINS)


def steps(chains: Chains) -> dict[str, Estimate]:
    """Return the accuracy of all steps, of each position, and the share of chains whose first wrong step is there.

    A step counts on its own, like any trial; where a chain breaks can be said of those only whose steps are all known.
    """
    estimates = {"step_accuracy": _of_steps(chains, chains.within, STEPS)}
    unbroken, known = np.ones(chains.lengths.size, dtype=bool), chains.known["Rcot"]
    for position in range(chains.steps.shape[1]):
        there = np.zeros_like(chains.within)
        there[:, position] = chains.within[:, position]
        breaks = there[:, position] & unbroken & ~chains.steps[:, position]
        estimates[f"step_{position + 1}_accuracy"] = _of_steps(chains, there, f"trials of step={position + 1}")
        estimates[f"break_at_{position + 1}"] = _over(chains, breaks.astype(np.float64), known, chains.failed)
        unbroken &= ~breaks
    estimates["unbroken"] = _over(chains, unbroken.astype(np.float64), known, chains.failed)
    return estimates


def _of_steps(chains: Chains, chosen: Flags, unit: str) -> Estimate:
    asked = chosen & chains.steps_stored
    rows = np.nonzero(asked & chains.steps_known)
    failed = int(np.count_nonzero(asked & chains.steps_failed))
    unscored = int(np.count_nonzero(asked & ~chains.steps_known)) - failed
    values, clusters = chains.steps[rows].astype(np.float64), chains.clusters[rows[0]]
    return structs.replace(estimate_mean(values, clusters, unscored=unscored, failed=failed), unit=unit)


def chains_from_items(ground_truth: Sequence[Mapping[str, Any]], predictions: Sequence[Any]) -> Chains:
    """Compare items `{"inference": i, "chain": […]}`; a missing or null answer is wrong. Errors name the item."""
    if len(ground_truth) != len(predictions):
        raise DataError(
            f"{len(ground_truth)} items but {len(predictions)} predictions: give one prediction an item, in order"
        )
    pairs = [
        _compare_item(i, truth, found) for i, (truth, found) in enumerate(zip(ground_truth, predictions, strict=True))
    ]
    longest = max((len(right) for _, right in pairs), default=0)
    padded = np.zeros((len(pairs), longest), dtype=bool)
    for row, (_, right) in enumerate(pairs):
        padded[row, : len(right)] = right
    lengths = np.array([len(right) for _, right in pairs], dtype=np.int64)
    inferences = np.array([inference for inference, _ in pairs], dtype=bool)
    return answered_chains(inferences, padded, lengths, np.arange(len(pairs)))


def _compare_item(index: int, truth: Mapping[str, Any], found: Any) -> tuple[bool, list[bool]]:
    chain = truth.get("chain")
    if truth.get("inference") is None or not isinstance(chain, (list, tuple)) or not chain:
        raise DataError(f"item {index}: ground truth needs `inference` and a `chain` of at least one step")
    inference, answers = _predicted(index, found, len(chain))
    right = [_same(index, gold, said) for gold, said in zip(chain, answers, strict=True)]
    return _same(index, truth["inference"], inference), right


def _predicted(index: int, found: Any, steps: int) -> tuple[Any, list[Any]]:
    """Return what was predicted, as many steps as there are; what is missing is None."""
    if found is not None and not isinstance(found, Mapping):
        raise DataError(f"item {index}: the prediction must be an object with `inference` and `chain`, or null")
    given = found or {}
    answers = given.get("chain") or ()
    if not isinstance(answers, (list, tuple)):
        raise DataError(f"item {index}: the predicted `chain` must be a list")
    if len(answers) > steps:
        raise DataError(f"item {index}: {len(answers)} predicted steps for a chain of {steps}")
    return given.get("inference"), [*answers, *[None] * (steps - len(answers))]


def _same(index: int, gold: Any, said: Any) -> bool:
    """Compare two answers written as indices; a label can only be compared with a label."""
    wanted, answer = _read_index(index, gold), _read_index(index, said)
    if wanted is None:
        raise DataError(f"item {index}: the ground truth holds null where an index from 0 belongs")
    if answer is not None and isinstance(wanted, int) is not isinstance(answer, int):
        mixed = f"{said!r} is predicted where the ground truth says {gold!r}"
        raise DataError(f"item {index}: {mixed}: write both as indices from 0, or both as labels")
    return answer == wanted


def _read_index(index: int, value: Any) -> int | str | None:
    """Return an index from 0 (also one written as text), a label without its brackets, or None."""
    if isinstance(value, str):
        text = value.strip().strip("()[].:").strip()
        return int(text) if text.isdecimal() else text.upper() or None
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise DataError(f"item {index}: {value!r} is no index: write whole numbers from 0, labels, or null")


def score_label(
    sample: Sample, request: Request, prediction: Prediction, options: Mapping[str, Any]
) -> Sequence[Score]:
    """Scorer `chain_label`: an index or a label against the right one; none at all is wrong, never unscored."""
    said = _read_index(0, prediction.text)
    right = _same(0, sample.answers[0], prediction.text)
    return [Score(request.key, "accuracy", float(right), None if said is None else str(said), "label")]
