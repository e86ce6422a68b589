"""Pieces of the line for programs of one's own: a dataset, a model, a stored run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import msgspec

from ..core.builtins import default_registry
from ..core.folders import cache_folder
from ..core.protocols import LoadContext, Model
from ..data.catalog import Catalog
from ..data.dataset import Dataset
from ..store.reader import RunReader
from .chosen_model import create_model
from .reform_items import LOADER_SETTINGS, ReformDataset, open_dataset
from .settings import ModelSettings, RunSettings, make_record, taking


@overload
def load_dataset(task: str, *, formulation: str, **settings: Any) -> ReformDataset: ...
@overload
def load_dataset(
    task: str, *, limit: int | None = None, seed: int = 0, catalogs: Sequence[str | Path] = (), **overrides: Any
) -> Dataset: ...
def load_dataset(
    task: str, *, limit: int | None = None, seed: int = 0, catalogs: Sequence[str | Path] = (), **overrides: Any
) -> Dataset | ReformDataset:
    """Return the samples of a task, by name or file; iterate it as often as you like.

    `overrides` set fields of its dataset table: `load_dataset("eyechart", charts=3)`. With `formulation=…`
    (SingleChoice, Generation, OCROpenEnded, KIEOpenEnded) or another setting of `open_dataset` (`option_mark=…`) it
    gives ready-made dicts with random access instead: see `snellen.api.reform_items`.

    Example:
        >>> [sample.question for sample in snellen.load_dataset("my.jsonl")]
        ['What is it?', 'Is it asleep?']
    """
    if overrides.keys() & LOADER_SETTINGS:
        return open_dataset(task, limit=limit, seed=seed, catalogs=catalogs, **overrides)
    card = Catalog(catalogs).task(task, [(f"dataset.{key}", value) for key, value in overrides.items()])
    context = LoadContext(seed=seed, workdir=cache_folder() / "generated", limit=limit)
    return Dataset(card, default_registry().get("loader", card.dataset["loader"]), context)


@taking(ModelSettings)
def load_model(name: str, **settings: Any) -> Model:
    """Return a model by `provider/name`; the settings of `run` that are about the model (`base_url=…`).

    Example:
        >>> "likelihood" in snellen.load_model("blind/first").capabilities
        True
    """
    told = make_record(ModelSettings, "load_model", settings)
    asked = RunSettings(tasks=(), model=name, **msgspec.structs.asdict(told))
    return create_model(asked, default_registry(told.plugins))


def load_run(folder: str | Path) -> RunReader:
    """Return the reader of a stored run: the old name of `RunReader(folder)`."""
    return RunReader(folder)
