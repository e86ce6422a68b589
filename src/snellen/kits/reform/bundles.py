"""Re-formulated datasets as files: a bundle built from raw annotations, items exported for models outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import UsageError
from ...core.folders import cache_folder
from ...core.protocols import LoadContext
from ...core.types import Image
from ...core.version import __version__
from ...data.catalog import Catalog
from ...data.files.bundle import Manifest, write_bundle
from ...data.files.work import Mapper, do_here
from ...data.images.decode import encode_png, open_image
from ...data.images.embedded import ImageStore
from .card_loader import load, read_card
from .items import ReformDataset


def build_bundle(
    name: str,
    out: str | Path,
    *,
    raw: str | Path | None = None,
    source: str | None = None,
    seed: int = 0,
    limit: int | None = None,
    parquet: bool = False,
    overrides: Sequence[tuple[str, Any]] = (),
    catalogs: Sequence[str | Path] = (),
    mapper: Mapper = do_here,
) -> Manifest:
    """Re-formulate a dataset and write it as a portable bundle folder; the same files and seed give the same bundle.

    Its pictures are read and checked by `mapper`; which options stand with which question is drawn here.
    """
    given: list[tuple[str, Any]] = [("dataset.source", source or ("raw" if raw else "auto"))]
    if raw is not None:
        given.append(("dataset.path", str(Path(raw).resolve())))
    task = Catalog(catalogs).task(name, [*given, *overrides])
    if task.dataset["loader"] != "reform":
        raise UsageError(f"{name!r} is loaded by {task.dataset['loader']!r}: only cards of loader 'reform' are built")
    context = LoadContext(seed=seed, workdir=cache_folder() / "generated", limit=limit)
    facts = {
        "name": name,
        "licence": task.licence,
        "source": read_card(task).home,
        "seed": seed,
        "made_by": f"snellen {__version__}",
    }
    return write_bundle(load(task, context), Path(out), parquet, mapper, **facts)


def expected_counts(name: str, catalogs: Sequence[str | Path] = ()) -> dict[str, int]:
    """Return how many samples a card's sources are known to give."""
    return read_card(Catalog(catalogs).task(name)).count


def export_items(dataset: ReformDataset, out: str | Path) -> int:
    """Write a dataset's items as JSON (a list) or JSON Lines, pictures as files beside it; return how many."""
    path = Path(out)
    if path.suffix not in (".json", ".jsonl"):
        raise UsageError(f"{str(out)!r}: the export is .json (a list) or .jsonl (a line each)")
    store = ImageStore(path.with_suffix("").with_name(path.stem + "_images").resolve())
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with path.open("wb") as stream:
        for count, row in enumerate(_rows(dataset, store), 1):
            opening = b"" if path.suffix == ".jsonl" else b"[\n" if count == 1 else b",\n"
            stream.write(opening + msgspec.json.encode(row) + (b"\n" if path.suffix == ".jsonl" else b""))
        stream.write(b"" if path.suffix == ".jsonl" else b"\n]\n" if count else b"[]\n")
    return count


def _rows(dataset: ReformDataset, store: ImageStore) -> Iterator[dict[str, Any]]:
    kept: dict[Image, str] = {}
    for index in range(len(dataset)):
        sample = dataset.sample_of(index)
        names = [_keep(image, store, kept) for image in sample.images]
        row = dataset.describe(index)
        row["image"] = names[0] if names else None
        if len(names) > 1:
            row["images"] = names
        yield row


def _keep(image: Image, store: ImageStore, kept: dict[Image, str]) -> str:
    """Write a picture as the model would see it, once; one without edits stays where it is."""
    if not image.edits and not image.ref.startswith("data:"):
        return image.ref
    if image not in kept:
        kept[image] = store.put(encode_png(open_image(image))).ref
    return kept[image]
