"""Pieces of the line for programs of one's own: a dataset, a model, a stored run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, overload

import msgspec

from ..core.builtins import default_registry
from ..core.folders import cache_folder
from ..core.protocols import LoadContext, Model
from ..data.catalog import Catalog
from ..data.dataset import Dataset
from ..store.reader import RunReader
from .chosen_model import create_model
from .settings import ModelSettings, RunSettings, make_record, taking


class Items(Protocol):
    """Samples as ready-made dicts with random access, as what is registered as `items` opens them."""

    def __len__(self) -> int:
        """Return how many there are."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield them in order."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return one."""


@overload
def load_dataset(task: str, *, formulation: str, **settings: Any) -> Items: ...
@overload
def load_dataset(
    task: str, *, limit: int | None = None, seed: int = 0, catalogs: Sequence[str | Path] = (), **overrides: Any
) -> Dataset: ...
def load_dataset(
    task: str, *, limit: int | None = None, seed: int = 0, catalogs: Sequence[str | Path] = (), **overrides: Any
) -> Dataset | Items:
    """Return the samples of a task, by name or file; iterate it as often as you like.

    `overrides` set fields of its dataset table: `load_dataset("eyechart", charts=3)`. With `formulation=…`
    (SingleChoice, Generation, OCROpenEnded, KIEOpenEnded) or another setting of `open_dataset` (`option_mark=…`) it
    gives ready-made dicts with random access instead: see docs/reform.md.

    Example:
        >>> [sample.question for sample in snellen.load_dataset("my.jsonl")]
        ['What is it?', 'Is it asleep?']
    """
    for kind in default_registry().names("items") if overrides else ():
        items = default_registry().get("items", kind)
        if overrides.keys() & items.LOADER_SETTINGS:
            opened: Items = items.open_dataset(task, limit=limit, seed=seed, catalogs=catalogs, **overrides)
            return opened
    card = Catalog(catalogs).task(task, [(f"dataset.{key}", value) for key, value in overrides.items()])
    context = LoadContext(seed=seed, workdir=cache_folder() / "generated", limit=limit)
    return Dataset(card, default_registry().get("loader", card.dataset["loader"]), context)


def load_reform_dataset(
    dataset_name: str, formulation: str, dataset_config: str | None = None, **arguments: Any
) -> Any:
    """Return a dataset by ReForm-Eval's own names (`dataset_name="VQA"`, `dataset_config=".../VQA_vqa_v2_val.yaml"`).

    Defaults are those of ReForm-Eval's function: in-context sample, five repeats, other wordings, shuffled options, and
    in dialogues capitals: its other datasets do not read `capitalize`.

    Example:
        >>> dataset = snellen.load_reform_dataset("VQA", "SingleChoice", "VQA_vqa_v2_val.yaml", source="raw", limit=1)
        >>> len(dataset), dataset[0]["question"]
        (5, 'what color is the cat?')
    """
    items = default_registry().get("items", "reform")
    return items.open_named(dataset_name, formulation, dataset_config, **arguments)


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
