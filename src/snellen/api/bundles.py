"""Data files and bundles: what is wrong in one, and what there is to count."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from ..core.builtins import default_registry
from ..core.errors import UsageError
from ..core.protocols import LoadContext
from ..core.types import Sample
from ..data.catalog import Catalog, card_of_file
from ..data.checks import Finding, Report, check_samples
from ..data.dataset_stats import DatasetStats, describe_samples
from ..data.files.bundle import MANIFEST, decode_items, items_match, read_manifest
from ..data.files.rows import READERS

JSON_FILES = (".json", ".jsonl")


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


def _holds_samples(path: Path) -> bool:
    with path.open("rb") as stream:
        try:
            return isinstance(msgspec.json.decode(stream.readline(), type=Sample), Sample)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
