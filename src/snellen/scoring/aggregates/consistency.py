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
from ...core.types import Estimate, Prediction, ReadPart, Request, Sample, Score
from ...stats.intervals import Floats, cluster_totals, estimate_mean, estimate_ratio
from ..tables.table import ScoreTable
from .means import READ, STRICT, as_bounds, bounded, group_codes, in_unit, read_twin

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


RIGHT = 1.0 - 1e-9
TWINS = ("Rh", "Rcot", "Ro", "Cf", "Cb")
"""Figures that have twins: over what was read alone, and with what was not answered as wrong; so do those of steps."""
CONDITIONAL = ("Cf", "Cb")
"""Figures of some chains only, which may fall when another answer turns right: they have no bounds."""


def chains_from_table(table: ScoreTable, *, role_tag: str = "role", step_tag: str = "step") -> Chains:
    """Gather trials into chains that are settled: each variant and repeat of a group is its own chain in its cluster.

    A trial is right when its value is 1; one that was not read is not. A chain is settled when all its questions are
    stored (tag `steps` says how many; without it, those that are there), or one has no reply. Raises DataError where
    there is no chain.
    """
    for tag in (role_tag, step_tag):
        if tag not in table.tags:
            raise DataError(f"consistency needs the sample tag {tag!r}: give it in the dataset card")
    roles, names = group_codes(table, role_tag)
    is_inference = np.isin(roles, [i for i, name in enumerate(names) if name == "inference"])
    items, item = chains_of(table)
    number = _step_numbers(table, step_tag)
    lengths, settled = _lengths(table, items, item, is_inference)
    _require_both(table, item, is_inference, settled if "steps" not in table.tags else None)
    if "steps" not in table.tags or not _fits(number[~is_inference], lengths[item[~is_inference]]):
        number = _ranks(item, number, is_inference)
    return _pad(table, (items[:, 0], item), is_inference, number, (lengths, settled))


def chains_of(table: ScoreTable) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return (cluster, variant, repeat) of every chain, and the chain of every trial."""
    keys = np.column_stack([table.cluster, table.variant, table.repeat])
    chains, chain = np.unique(keys, axis=0, return_inverse=True)
    return chains, chain.reshape(-1)


def settled_chains(table: ScoreTable) -> int:
    """Return how many chains are stored to their end, or failed on the way."""
    items, item = chains_of(table)
    roles, names = group_codes(table, "role")
    is_inference = np.isin(roles, [i for i, name in enumerate(names) if name == "inference"])
    return int(np.count_nonzero(_lengths(table, items, item, is_inference)[1]))


def _lengths(
    table: ScoreTable, items: NDArray[Any], item: NDArray[Any], is_inference: Flags
) -> tuple[NDArray[np.int64], Flags]:
    """Return the number of steps of every chain, and whether it is settled."""
    stored = np.bincount(item, minlength=len(items))
    if "steps" not in table.tags:
        lengths = np.bincount(item[~is_inference], minlength=len(items)).astype(np.int64)
        return lengths, np.ones(len(items), dtype=bool)
    codes, texts = table.tags["steps"]
    lengths = np.zeros(len(items), dtype=np.int64)
    lengths[item] = np.array([int(text) for text in texts], dtype=np.int64)[codes][table.sample]
    failed = np.bincount(item, weights=table.failed, minlength=len(items)) > 0
    return lengths, (stored == lengths + 1) | failed


def _require_both(table: ScoreTable, item: NDArray[Any], is_inference: Flags, items: Flags | None) -> None:
    if items is None:
        return
    for chosen, what in ((is_inference, "inference (tag role = inference)"), (~is_inference, "steps")):
        missing = np.flatnonzero(np.bincount(item[chosen], minlength=items.size) == 0)
        if missing.size:
            row = int(np.flatnonzero(item == missing[0])[0])
            name = table.samples[table.sample[row]]
            raise DataError(f"the chain of sample {name!r} has no {what}: it cannot be scored for consistency")


def _step_numbers(table: ScoreTable, tag: str) -> Floats:
    codes, _ = group_codes(table, tag)
    texts = table.tags[tag][1]
    numbers = np.array([float(text) if text.replace(".", "", 1).isdigit() else np.inf for text in texts])
    return np.asarray(numbers[codes], dtype=np.float64)


def _fits(number: Floats, length: NDArray[np.int64]) -> bool:
    return bool(np.all((number >= 1.0) & (number <= length)))


def _ranks(item: NDArray[Any], number: Floats, is_inference: Flags) -> Floats:
    """Return the place of every step in its chain, from 1, where numbers may be any."""
    ranks = np.zeros(item.size)
    rows = np.flatnonzero(~is_inference)
    order = rows[np.lexsort((number[rows], item[rows]))]
    ranks[order] = np.arange(order.size) - np.searchsorted(item[order], item[order]) + 1
    return ranks


def _pad(
    table: ScoreTable,
    chains: tuple[NDArray[Any], NDArray[Any]],
    is_inference: Flags,
    number: Floats,
    shape: tuple[NDArray[np.int64], Flags],
) -> Chains:
    """Lay the trials out, one row a chain."""
    (clusters, item), (lengths, settled) = chains, shape
    right = table.scored & (table.value >= RIGHT)
    asked = np.bincount(item[is_inference], minlength=settled.size) > 0
    inference, read = asked.copy(), asked.copy()
    np.logical_and.at(inference, item[is_inference], right[is_inference])
    np.logical_and.at(read, item[is_inference], table.scored[is_inference])
    rows = np.flatnonzero(~is_inference)
    place = (item[rows], number[rows].astype(np.int64) - 1)
    cells = []
    for values in (right, table.scored, table.failed, np.ones(len(table), dtype=bool)):
        cell = np.zeros((settled.size, int(lengths.max(initial=0))), dtype=bool)
        cell[place] = values[rows]
        cells.append(cell[settled])
    failed = np.bincount(item, weights=table.failed, minlength=settled.size) > 0
    lost = np.bincount(item[is_inference], weights=table.failed[is_inference], minlength=settled.size) > 0
    right_steps, steps_read, steps_failed, steps_stored = cells
    heads = inference[settled], right_steps, lengths[settled], clusters[settled], read[settled]
    return Chains(*heads, steps_read, steps_failed, steps_stored, failed[settled], (lost | ~asked)[settled])


def aggregate(table: ScoreTable, options: Mapping[str, Any] | None = None) -> dict[str, Estimate]:
    """Return all consistency metrics of a table of chains, and their twins.

    Options: `convention`, `role_tag`, `step_tag`.
    """
    chosen = options or {}
    tags = {name: str(chosen.get(name, default)) for name, default in (("role_tag", "role"), ("step_tag", "step"))}
    convention = str(chosen.get("convention", "conditional"))
    all_read = not table.unread.any()
    chains = chains_from_table(table, **tags)
    only_read = chains if all_read else chains_from_table(table.only_read, **tags)

    def of(chains: Chains) -> dict[str, Estimate]:
        return consistency(chains, convention) | steps(chains)

    estimates, strict, best = of(chains), of(chains.counted_as(right=False)), of(only_read.counted_as(right=True))
    read = estimates if all_read else of(only_read)
    twins = [name for name in estimates if name in TWINS or name.endswith("_accuracy")]
    for name in twins:
        sure = name not in CONDITIONAL or convention != "conditional"
        bounds = as_bounds(strict[name], best[name]) if sure else None
        part = ReadPart(read[name].value, read[name].n)
        estimates[name] = structs.replace(estimates[name], bounds=bounds, read=part)
    beside = {f"{name}{READ}": read[name] for name in twins} | {f"{name}{STRICT}": strict[name] for name in twins}
    return estimates | beside


def chain_estimates(table: ScoreTable, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return all consistency metrics of chains that may lack questions or replies: what is missing is never guessed.

    Needs the tags role, step and steps (chain length). Where only inferences or only steps are asked, what they give.
    """
    if not {"role", "steps"} <= set(table.tags):
        return {}
    codes, names = table.tags["role"]
    roles = {names[code] for code in np.unique(codes[table.sample])}
    if roles == {"inference", "step"}:
        return aggregate(table, options)
    name = {"inference": "Rh", "step": "step_accuracy"}.get(next(iter(roles), ""), "")
    if len(roles) != 1 or not name:
        return {}
    unit = CHAINS if name == "Rh" else STEPS
    found = bounded(table, _trials)
    strict = estimate_mean((table.scored & (table.value >= RIGHT)).astype(np.float64), table.cluster)
    return in_unit(unit, {name: found, f"{name}{READ}": read_twin(table, found, _trials), f"{name}{STRICT}": strict})


def _trials(table: ScoreTable) -> Estimate:
    scored, unscored, failed = table.counts
    right = (table.value >= RIGHT).astype(np.float64)
    return estimate_mean(right[table.scored], table.cluster[table.scored], n=scored, unscored=unscored, failed=failed)
