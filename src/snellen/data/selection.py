"""Which samples are asked: a subset, those named, or a seeded draw, the same share of every value of a tag."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path

from msgspec import Struct

from ..core.config import convert
from ..core.errors import UsageError, did_you_mean
from ..core.ids import rng
from ..core.types import Sample
from .catalog import Catalog
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


class Subset(Struct, frozen=True, forbid_unknown_fields=True):
    """Which samples of a task belong to a subset; a task with fewer than it draws is asked whole."""

    title: str = ""
    tags: dict[str, str] = {}
    """Only samples whose tags have these values."""
    ids: tuple[str, ...] = ()
    """Only these samples; all of them must be in the task."""
    notes: str = ""
    """Where it comes from."""
    first: int | None = None
    """So many from the beginning."""
    sample: int | None = None
    """So many drawn ones."""
    seed: int = 0
    stratify: str | None = None
    """A tag of which every value gets its share of `sample`."""


def read_subset(name: str, catalog: Catalog) -> Subset:
    """Return the subset of a card's name, of `FOLDER/NAME` (a card that lies beside a run), or of `column=value`."""
    column, equals, value = name.partition("=")
    if equals:
        return Subset(tags={column: value})
    folder, slash, own = name.rpartition("/")
    if slash:
        catalog, name = Catalog((Path(folder),)), own
    subset = convert(catalog.card("subsets", name), Subset, f"subset {name!r}")
    if subset.first is not None and subset.sample is not None:
        raise UsageError(f"subset {name!r} names `first` and `sample`: one of them")
    return subset


def choose_subset(dataset: Dataset, subset: Subset) -> Dataset:
    """Return the dataset with only the samples of a subset; one that is empty is refused with the values there are."""
    if subset.tags:
        dataset = replace(dataset, chosen=frozenset(_tagged(dataset, subset.tags)), _kept=[])
    if subset.ids:
        dataset = choose(dataset, subset.ids, told="the subset's ids")
    if subset.first is not None:
        names = [sample.id for sample in islice(dataset, subset.first)]
    elif subset.sample is not None:
        count = sum(1 for _ in dataset)
        names = draw(dataset, min(subset.sample, count), subset.seed, subset.stratify)
    else:
        return dataset
    return replace(dataset, chosen=frozenset(names), _kept=[])


def _tagged(dataset: Dataset, wanted: dict[str, str]) -> list[str]:
    found: list[str] = []
    values: dict[str, set[str]] = {column: set() for column in wanted}
    columns: set[str] = set()
    for sample in dataset:
        columns.update(sample.tags)
        for column in wanted:
            values[column].add(str(sample.tags.get(column)))
        if all(column in sample.tags and str(sample.tags[column]) == value for column, value in wanted.items()):
            found.append(sample.id)
    if not found:
        raise UsageError(_nothing(dataset.task.name, wanted, values, columns))
    return found


def _nothing(task: str, wanted: dict[str, str], values: dict[str, set[str]], columns: set[str]) -> str:
    unknown = next((column for column in wanted if column not in columns), None)
    if unknown is not None:
        return f"--subset: task {task!r} has no column {unknown!r}{did_you_mean(unknown, columns)}"
    column, value = next(iter(wanted.items()))
    near = did_you_mean(value, values[column])
    has = ", ".join(sorted(values[column])[:LISTED])
    return f"--subset: no sample of task {task!r} has {column} {value!r}{near}; there are: {has}"
