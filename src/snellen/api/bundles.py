"""Datasets as files: build a bundle from raw annotations, check what is in one, export it for models outside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..core.builtins import default_registry
from ..core.errors import UsageError
from ..core.folders import cache_folder
from ..core.protocols import LoadContext
from ..core.types import Image, Sample
from ..core.version import __version__
from ..data.catalog import Catalog, card_of_file
from ..data.dataset_stats import DatasetStats, describe_samples
from ..data.files.bundle import MANIFEST, Manifest, decode_items, items_match, read_manifest, write_bundle
from ..data.files.rows import READERS
from ..data.files.work import Mapper, do_here
from ..data.images.decode import encode_png, open_image
from ..data.images.embedded import ImageStore
from ..data.reform.card_loader import load, read_card
from ..data.reform.checks import Finding, Report, check_samples
from .reform_items import ReformDataset

JSON_FILES = (".json", ".jsonl")


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
    facts = {"name": name, "licence": task.licence, "source": read_card(task).home, "seed": seed, "made_by": _version()}
    return write_bundle(load(task, context), Path(out), parquet, mapper, **facts)


def check_data(path: str | Path, *, images: bool = True) -> Report:
    """Check a bundle (its folder or manifest), its items file, or a data file of one's own."""
    if folder := _bundle_of(Path(path)):
        return _check_bundle(folder, images)
    samples, licence = _open_file(Path(path))
    return check_samples(samples, licence, images)


def data_stats(path: str | Path) -> DatasetStats:
    """Count what is in the same kinds of files; no picture is opened."""
    file = Path(path)
    if folder := _bundle_of(file):
        return describe_samples(decode_items(folder / read_manifest(folder).items, folder))
    if file.is_file() and file.suffix in JSON_FILES and card_of_file(file):
        task = Catalog().task(str(file))
        return describe_samples(*default_registry().get("loader", task.dataset["loader"]).described(task))
    return describe_samples(_open_file(file)[0])


def _bundle_of(file: Path) -> Path | None:
    folder = file.parent if file.name == MANIFEST else file
    return folder if (folder / MANIFEST).is_file() else None


def _open_file(file: Path) -> tuple[Iterable[Sample], str]:
    """Return the samples of a data file and their licence."""
    if file.suffix.lower() not in READERS or not file.is_file():
        raise UsageError(f"{str(file)!r} is neither a bundle folder nor a data file ({', '.join(READERS)})")
    if file.suffix == ".jsonl" and _holds_samples(file):
        return decode_items(file, file.parent), ""
    task = Catalog().task(str(file))
    return default_registry().get("loader", task.dataset["loader"])(task, LoadContext()), task.licence


def _check_bundle(folder: Path, images: bool) -> Report:
    manifest = read_manifest(folder)
    report = check_samples(decode_items(folder / manifest.items, folder), manifest.licence, images)
    extra = []
    if not items_match(folder, manifest):
        extra.append(Finding("checksum", "error", f"{manifest.items} was changed after the bundle was built"))
    if report.samples != manifest.samples:
        extra.append(Finding("count", "error", f"{report.samples} samples where the manifest says {manifest.samples}"))
    return msgspec.structs.replace(report, findings=(*extra, *report.findings))


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


def _holds_samples(path: Path) -> bool:
    with path.open("rb") as stream:
        try:
            return isinstance(msgspec.json.decode(stream.readline(), type=Sample), Sample)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False


def _version() -> str:
    return f"snellen {__version__}"
