"""Which samples of a task are asked: those named, or a seeded draw, the same share of every value of a tag if told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace

from ..core.errors import UsageError, did_you_mean
from ..core.ids import rng
from ..core.types import Sample
from .dataset import LISTED, Dataset


def choose(
    dataset: Dataset,
    ids: Collection[str] = (),
    sample: int | None = None,
    seed: int = 0,
    stratify: str | None = None,
    *,
    told: str = "--ids",
) -> Dataset:
    """Return the dataset with only the samples of these ids, or `sample` drawn ones; an unknown id is refused.

    `told`: where the ids come from.
    """
    if stratify is not None and sample is None:
        raise UsageError(f"--stratify {stratify} needs --sample N: how many to draw")
    if ids:
        _check_ids(dataset, ids, told)
        dataset = replace(dataset, chosen=frozenset(ids), _kept=[])
    if sample is None:
        return dataset
    return replace(dataset, chosen=frozenset(draw(dataset, sample, seed, stratify)), _kept=[])


def _check_ids(dataset: Dataset, ids: Collection[str], told: str) -> None:
    known = {one.id for one in dataset}
    missing = [name for name in ids if name not in known]
    if missing:
        shown = ", ".join(map(repr, missing[:LISTED]))
        near = did_you_mean(missing[0], known)
        raise UsageError(
            f"task {dataset.task.name!r} has no sample {shown}{near} ({len(missing)} of {told} are unknown)"
        )


def draw(samples: Iterable[Sample], count: int, seed: int, stratify: str | None = None) -> list[str]:
    """Return `count` ids drawn without replacement; with `stratify`, from every value of that tag its share.

    What the shares leave over goes to the values with the largest remainders.
    """
    strata: dict[str, list[str]] = defaultdict(list)
    for sample in samples:
        if stratify is not None and stratify not in sample.tags:
            near = did_you_mean(stratify, sample.tags)
            raise UsageError(f"--stratify {stratify}: sample {sample.id!r} has no such tag{near}")
        strata[str(sample.tags[stratify]) if stratify else ""].append(sample.id)
    total = sum(map(len, strata.values()))
    if count > total:
        raise UsageError(f"--sample {count}: there are only {total} samples")
    sizes = _shares({value: len(members) for value, members in strata.items()}, count)
    return [
        name
        for value, members in sorted(strata.items())
        for name in rng(seed, "sample", stratify or "", value).sample(sorted(members), sizes[value])
    ]


def _shares(sizes: dict[str, int], count: int) -> dict[str, int]:
    total = sum(sizes.values()) or 1
    shares = {value: size * count // total for value, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda value: (-(sizes[value] * count % total), value))
    for value in by_remainder[: count - sum(shares.values())]:
        shares[value] += 1
    return shares
