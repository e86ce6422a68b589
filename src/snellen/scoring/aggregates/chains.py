"""Chains that may be incomplete or partly without reply to consistency metrics: what is missing is counted, never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...core.types import Estimate
from ...stats.intervals import estimate_mean
from ..table import Outcome, ScoreTable
from .consistency import aggregate as aggregate_chains

STRICT = ("Rh", "Rcot", "Ro")


def chain_estimates(table: ScoreTable, options: Mapping[str, Any]) -> dict[str, Estimate]:
    """Return Rh, Rcot, Ro, Cf, Cb, the steps by position and where chains break; needs the tags role, step and steps (chain length).

    A chain with a question that has no reply is left out and counted as failed (`…_strict` counts it as wrong);
    a reply that cannot be read is wrong; chains not yet asked to the end are left out.
    """
    if not {"role", "steps"} <= set(table.tags):
        return {}
    roles = (
        set(np.asarray(table.tags["role"][1])[np.unique(table.tags["role"][0][table.sample])]) if len(table) else set()
    )
    if roles != {"inference", "step"}:
        name = {"inference": "Rh", "step": "step_accuracy"}.get(next(iter(roles), ""), "")
        answered = table.outcome != Outcome.FAILED
        values = np.where(table.scored, table.value, 0.0)[answered]
        return {name: estimate_mean(values, table.cluster[answered], failed=int((~answered).sum()))} if name else {}
    complete, failed = complete_rows(table)
    if not complete.any():
        return {}
    replied = complete & ~failed
    lost = _count_chains(table, complete) - _count_chains(table, replied)
    estimates = aggregate_chains(table.take(replied), options) if replied.any() else {}
    estimates = {name: msgspec.structs.replace(estimate, failed=lost) for name, estimate in estimates.items()}
    if lost:
        strict = aggregate_chains(table.take(complete), options)
        estimates |= {f"{name}_strict": strict[name] for name in STRICT}
    return estimates


def complete_rows(table: ScoreTable) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which trials belong to a chain that has all its questions stored, and to one with a question that has no reply."""
    keys = np.column_stack([table.cluster, table.variant, table.repeat])
    _, chain = np.unique(keys, axis=0, return_inverse=True)
    chain = chain.reshape(-1)
    codes, texts = table.tags["steps"]
    lengths = np.array([int(text) for text in texts])[codes][table.sample]
    complete = np.bincount(chain)[chain] == lengths + 1
    broken = np.bincount(chain, weights=table.outcome == Outcome.FAILED)[chain] > 0
    return complete, broken


def _count_chains(table: ScoreTable, rows: NDArray[np.bool_]) -> int:
    return len(np.unique(np.column_stack([table.cluster, table.variant, table.repeat])[rows], axis=0))
