"""A table of trials to chains: samples of one group, with tag `role` inference or step, and tag `step` 1, 2, …

Nothing is guessed: a question without a reply fails its chain, a chain not yet asked to the end waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from ...core.errors import DataError
from ...core.types import Estimate, ReadPart
from ...stats.intervals import Floats, estimate_mean
from ..tables.table import ScoreTable
from .consistency import CHAINS, STEPS, Chains, Flags, consistency, steps
from .means import READ, STRICT, as_bounds, bounded, group_codes, in_unit, read_twin

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
