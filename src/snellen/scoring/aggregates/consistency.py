"""Chains of questions in, reasoning and consistency out: Rh, Rcot, Ro, Cf, Cb and where chains break.

h: the inference is right; s: every step of the chain is right. Rh = mean h, Rcot = mean s, Ro = mean h·s. The published
numbers of CURE follow the conditional convention, Cf = Ro/Rcot and Cb = Ro/Rh; `over-n` divides by all items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...core.errors import DataError, UsageError
from ...core.types import Estimate
from ...stats.intervals import Floats, cluster_totals, estimate_mean, estimate_ratio
from ..table import ScoreTable
from .means import group_codes

CONVENTIONS = ("conditional", "over-n")
STRICT = ("Rh", "Rcot", "Ro")


@dataclass(frozen=True)
class Chains:
    """One row a chain: was the inference right, which steps were right (padded), how long is it, in which cluster."""

    inference: NDArray[np.bool_]
    steps: NDArray[np.bool_]
    """Items × longest chain; what lies beyond a chain's length is ignored."""
    lengths: NDArray[np.int64]
    clusters: NDArray[Any]

    @property
    def within(self) -> NDArray[np.bool_]:
        """Return which cells of `steps` are steps."""
        return np.arange(self.steps.shape[1])[None, :] < self.lengths[:, None]

    @property
    def whole(self) -> NDArray[np.bool_]:
        """Return whether all steps of each chain are right."""
        return np.asarray(np.all(self.steps | ~self.within, axis=1))


def consistency(chains: Chains, convention: str = "conditional") -> dict[str, Estimate]:
    """Return Rh, Rcot, Ro, Cf, Cb with 95 % intervals; a conditional one that no item qualifies for is None."""
    if convention not in CONVENTIONS:
        raise UsageError(f"unknown convention {convention!r}: use {' or '.join(CONVENTIONS)}")
    inference, whole = chains.inference.astype(np.float64), chains.whole.astype(np.float64)
    both = inference * whole
    estimates = {
        name: estimate_mean(values, chains.clusters)
        for name, values in (("Rh", inference), ("Rcot", whole), ("Ro", both))
    }
    if convention == "over-n":
        return estimates | {"Cf": estimates["Ro"], "Cb": estimates["Ro"]}
    return estimates | {"Cf": _given(both, whole, chains.clusters), "Cb": _given(both, inference, chains.clusters)}


def _given(both: Floats, condition: Floats, clusters: NDArray[Any]) -> Estimate:
    """Return Σboth/Σcondition; with single items a cluster this is a plain proportion of those that qualify."""
    if np.unique(clusters).size == clusters.size:
        return estimate_mean(both[condition > 0])
    sums, sizes = cluster_totals(both, clusters)[0], cluster_totals(condition, clusters)[0]
    qualified = sizes > 0
    return estimate_ratio(sums[qualified], sizes[qualified], bounded=True, n=int(condition.sum()))


def steps(chains: Chains) -> dict[str, Estimate]:
    """Return the accuracy of all steps, of each position, and the share of chains whose first wrong step is there."""
    within = chains.within
    rows = np.nonzero(within)
    right = chains.steps.astype(np.float64)
    estimates = {"step_accuracy": estimate_mean(right[rows], chains.clusters[rows[0]])}
    unbroken = np.ones(chains.lengths.size, dtype=bool)
    for position in range(chains.steps.shape[1]):
        has = within[:, position]
        breaks = has & unbroken & ~chains.steps[:, position]
        estimates[f"step_{position + 1}_accuracy"] = estimate_mean(right[has, position], chains.clusters[has])
        estimates[f"break_at_{position + 1}"] = estimate_mean(breaks.astype(np.float64), chains.clusters)
        unbroken &= ~breaks
    estimates["unbroken"] = estimate_mean(unbroken.astype(np.float64), chains.clusters)
    return estimates


def chains_from_items(ground_truth: Sequence[Mapping[str, Any]], predictions: Sequence[Mapping[str, Any]]) -> Chains:
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
    return Chains(np.array([inference for inference, _ in pairs], dtype=bool), padded, lengths, np.arange(len(pairs)))


def _compare_item(index: int, truth: Mapping[str, Any], found: Mapping[str, Any]) -> tuple[bool, list[bool]]:
    chain = truth.get("chain")
    if truth.get("inference") is None or not isinstance(chain, (list, tuple)) or not chain:
        raise DataError(f"item {index}: ground truth needs `inference` and a `chain` of at least one step")
    answers = found.get("chain") or ()
    if not isinstance(answers, (list, tuple)):
        raise DataError(f"item {index}: the predicted `chain` must be a list")
    if len(answers) > len(chain):
        raise DataError(f"item {index}: {len(answers)} predicted steps for a chain of {len(chain)}")
    right = [position < len(answers) and answers[position] == gold for position, gold in enumerate(chain)]
    return found.get("inference") == truth["inference"], right


def chains_from_table(table: ScoreTable, *, role_tag: str = "role", step_tag: str = "step") -> Chains:
    """Gather trials into chains: samples of one group, with tag `role` inference or step, and tag `step` 1, 2, …

    Each variant and repeat of a group is its own chain in the group's cluster. A trial is right when its value is 1;
    unscored and failed ones are wrong. Raises DataError for a group without an inference or without steps.
    """
    for tag in (role_tag, step_tag):
        if tag not in table.tags:
            raise DataError(f"consistency needs the sample tag {tag!r}: give it in the dataset card")
    roles, names = group_codes(table, role_tag)
    is_inference = np.isin(roles, [i for i, name in enumerate(names) if name == "inference"])
    position, _ = group_codes(table, step_tag)
    items, item = _chains_of(table)
    _require_both(table, item, is_inference, len(items))
    right = table.scored & (table.value >= 1.0 - 1e-9)
    inference = np.ones(len(items), dtype=bool)
    np.logical_and.at(inference, item[is_inference], right[is_inference])
    return _pad_steps(
        item[~is_inference],
        _step_numbers(table, step_tag, position)[~is_inference],
        right[~is_inference],
        inference,
        items[:, 0],
    )


def _chains_of(table: ScoreTable) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return (cluster, variant, repeat) of every chain, and the chain of every trial."""
    keys = np.column_stack([table.cluster, table.variant, table.repeat])
    chains, chain = np.unique(keys, axis=0, return_inverse=True)
    return chains, chain.reshape(-1)


def _require_both(table: ScoreTable, item: NDArray[Any], is_inference: NDArray[np.bool_], items: int) -> None:
    for chosen, what in ((is_inference, "an inference (tag role = inference)"), (~is_inference, "steps")):
        missing = np.flatnonzero(np.bincount(item[chosen], minlength=items) == 0)
        if missing.size:
            row = int(np.flatnonzero(item == missing[0])[0])
            name = table.samples[table.sample[row]]
            raise DataError(f"the chain of sample {name!r} has no {what}: it cannot be scored for consistency")


def _step_numbers(table: ScoreTable, tag: str, codes: NDArray[Any]) -> Floats:
    texts = table.tags[tag][1]
    numbers = np.array([float(text) if text.replace(".", "", 1).isdigit() else np.inf for text in texts])
    return np.asarray(numbers[codes], dtype=np.float64)


def _pad_steps(
    item: NDArray[Any], number: Floats, right: NDArray[np.bool_], inference: NDArray[np.bool_], clusters: NDArray[Any]
) -> Chains:
    lengths = np.bincount(item, minlength=inference.size).astype(np.int64)
    order = np.lexsort((number, item))
    place = np.arange(item.size) - np.searchsorted(item[order], item[order])
    padded = np.zeros((inference.size, int(lengths.max(initial=0))), dtype=bool)
    padded[item[order], place] = right[order]
    return Chains(inference, padded, lengths, clusters)


def aggregate(table: ScoreTable, options: Mapping[str, Any] | None = None) -> dict[str, Estimate]:
    """Return all consistency metrics of a table of chains. Options: `convention`, `role_tag`, `step_tag`."""
    chosen = options or {}
    chains = chains_from_table(
        table, role_tag=str(chosen.get("role_tag", "role")), step_tag=str(chosen.get("step_tag", "step"))
    )
    return consistency(chains, str(chosen.get("convention", "conditional"))) | steps(chains)


def chain_estimates(table: ScoreTable, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return all consistency metrics of chains that may lack questions or replies: what is missing is never guessed.

    Needs the tags role, step and steps (chain length). A chain with a question that has no reply is left out and
    counted as failed (`…_strict` counts it as wrong); a reply that cannot be read is wrong; chains not yet asked to
    the end are left out.
    """
    if not {"role", "steps"} <= set(table.tags):
        return {}
    codes, names = table.tags["role"]
    roles = {names[code] for code in np.unique(codes[table.sample])}
    if roles != {"inference", "step"}:
        name = {"inference": "Rh", "step": "step_accuracy"}.get(next(iter(roles), ""), "")
        answered = ~table.failed
        failed = int(np.count_nonzero(table.failed))
        return {name: estimate_mean(table.value[answered], table.cluster[answered], failed=failed)} if name else {}
    complete, broken = complete_rows(table)
    if not complete.any():
        return {}
    replied = complete & ~broken
    lost = _count_chains(table, complete) - _count_chains(table, replied)
    estimates = aggregate(table.take(replied), options) if replied.any() else {}
    estimates = {name: msgspec.structs.replace(estimate, failed=lost) for name, estimate in estimates.items()}
    if lost:
        strict = aggregate(table.take(complete), options)
        estimates |= {f"{name}_strict": strict[name] for name in STRICT}
    return estimates


def complete_rows(table: ScoreTable) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which trials belong to a chain with all questions stored, and to one with a question without a reply."""
    _, chain = _chains_of(table)
    codes, texts = table.tags["steps"]
    lengths = np.array([int(text) for text in texts])[codes][table.sample]
    complete = np.bincount(chain)[chain] == lengths + 1
    broken = np.bincount(chain, weights=table.failed)[chain] > 0
    return complete, broken


def _count_chains(table: ScoreTable, rows: NDArray[np.bool_]) -> int:
    return len(_chains_of(table.take(rows))[0])
