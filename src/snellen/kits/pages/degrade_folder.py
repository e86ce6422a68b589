"""A variant folder and a chain of degradations into a new variant folder, with what each page lost beside it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from ...core.config import convert, read_config_file
from ...core.errors import ConfigError, DataError, UsageError
from ...core.ids import rng
from ...data.files.work import Mapper, WorkSpec, do_here
from ...data.images.edits import CALIBRATION
from .pages import PageFile, page_name, read_pages
from .perturb import calibration, edits_of
from .publish import DocumentRecord, Manifest, PageRecord, document_record, page_record, read_manifest, write_manifest
from .quality import character_error_rate
from .render import png_bytes
from .sheet_work import DegradedSheet, DegradeSettings, Sheet, open_sheet

PAGE_FAMILIES = ("page_shuffle", "page_missing", "page_duplicate", "page_stitch")
"""Families that act on the order of pages: severity 1–5 is how many pages are touched."""
WORK = "snellen.kits.pages.sheet_work:SheetDegrader"
_STITCH = ((1, 2), (1, 2), (2, 2), (2, 2), (2, 3))
"""Severity 1–5 of `page_stitch`: rows and columns of pages on one sheet."""
Transcribe = Callable[[bytes], str]


class Variant(Struct, frozen=True, forbid_unknown_fields=True):
    """One degraded folder of a recipe."""

    steps: tuple[str, ...]
    name: str = ""
    seed: int | None = None

    @property
    def folder(self) -> str:
        """Return the folder's name: its own, or the steps joined."""
        return self.name or "+".join(step.replace(":", "_") for step in self.steps)


class Recipe(Struct, frozen=True, forbid_unknown_fields=True):
    """A TOML recipe: `[[variant]] steps = ["rotation:2", "jpeg:3"]`, as many as wanted, or `families = […]`."""

    variant: tuple[Variant, ...] = ()
    families: tuple[str, ...] = ()
    severities: tuple[int, ...] = (1, 2, 3, 4, 5)
    seed: int = 0
    calibration: int = CALIBRATION
    """The table of levels: a recipe that names it means the same pictures in every release."""

    def variants(self) -> list[Variant]:
        """Return all variants, those of `families` × `severities` after the named ones."""
        grid = [Variant((f"{family}:{severity}",)) for family in self.families for severity in self.severities]
        return [*self.variant, *grid]


def read_recipe(path: Path) -> Recipe:
    """Read and check a recipe; every step must name a known family."""
    recipe = convert(read_config_file(path), Recipe, f"recipe {path}")
    variants = recipe.variants()
    if not variants:
        raise ConfigError(f'recipe {path} has no variant: add [[variant]] steps = ["jpeg:3"] or families = ["jpeg"]')
    for variant in variants:
        check_steps(variant.steps)
    return recipe


def check_steps(steps: Sequence[str]) -> None:
    """Refuse a step that is not `family:severity` of a known family."""
    for step in steps:
        family, _, severity = step.partition(":")
        if family in PAGE_FAMILIES:
            if severity not in ("1", "2", "3", "4", "5"):
                raise UsageError(f"perturbation {step!r}: severities run from 1 to 5")
        else:
            edits_of(step, 0)


def degrade(
    source: Path,
    target: Path,
    steps: Sequence[str],
    seed: int = 0,
    transcribe: Transcribe | None = None,
    *,
    calibrated: int = CALIBRATION,
    mapper: Mapper = do_here,
) -> Manifest:
    """Apply the steps to every page of `source` and write `target`; documents with gaps or non-images are refused.

    Pages are degraded by `mapper`; the folder is the same to the byte whoever that is.
    """
    calibration(calibrated)
    check_steps(steps)
    folder = read_pages(source)
    if folder.problems:
        name, problem = next(iter(folder.problems.items()))
        count = f"{len(folder.problems)} documents have such problems"
        raise DataError(f"{folder.root}: document {name}: {problem} ({count})")
    if not folder.documents:
        raise DataError(f"{folder.root} holds no pages named ID_page_001.png")
    (target / "images").mkdir(parents=True, exist_ok=True)
    before = read_manifest(source) or Manifest("", {})
    spec = WorkSpec(WORK, msgspec.msgpack.encode(DegradeSettings(tuple(steps), seed, calibrated)))
    sheets = [sheet for document, pages in folder.documents.items() for sheet in _sheets(document, pages, steps, seed)]
    results = mapper(spec, (msgspec.msgpack.encode(sheet.read()) for sheet in sheets))
    pages = _write_pages(target, sheets, results, transcribe)
    records = {
        document: _record(pages.get(document, []), before.documents.get(document)) for document in folder.documents
    }
    kept: dict[str, Any] = {name: getattr(before, name) for name in ("style", "font_sha256", "tokenizer")}
    kept |= {"perturbation": tuple(steps), "seed": seed, "calibration": calibrated}
    manifest = Manifest("perturb", records, source={"name": source.name}, **kept)
    write_manifest(target, manifest)
    return manifest


def arrange(count: int, family: str, severity: int, generator: random.Random) -> list[int]:
    """Return which pages (from 0) stand where after pages were shuffled, lost or doubled."""
    order = list(range(count))
    touched = generator.sample(order, min(count, severity))
    if family == "page_missing":
        return [page for page in order if page not in touched] or order[:1]
    if family == "page_duplicate":
        return [page for page in order for _ in range(2 if page in touched else 1)]
    if family == "page_shuffle":
        moved = sorted(touched)
        for place, page in zip(moved, [*moved[1:], *moved[:1]], strict=True):
            order[place] = page
    return order


def _write_pages(
    target: Path, sheets: Sequence[Sheet], results: Iterator[bytes], transcribe: Transcribe | None
) -> Mapping[str, list[PageRecord]]:
    """Write the degraded pages as they come, in the order of the sheets; return their records by document."""
    written: dict[str, list[PageRecord]] = {}
    for sheet, result in zip(sheets, results, strict=True):
        made = msgspec.msgpack.decode(result, type=DegradedSheet)
        name, loss = page_name(sheet.document, sheet.number), dict(made.loss)
        (target / "images" / name).write_bytes(made.png)
        if transcribe is not None:
            seen = transcribe(png_bytes(np.asarray(open_sheet(sheet.read()))))
            loss["cer"] = round(character_error_rate(seen, transcribe(made.png)), 4)
        record = page_record(name, made.png, (made.width, made.height), loss)
        written.setdefault(sheet.document, []).append(record)
    return written


def _record(pages: list[PageRecord], known: DocumentRecord | None) -> DocumentRecord:
    extra = {"characters": known.characters} if known else {}
    return document_record(pages, known.text_tokens if known else 0, **extra)


def _sheets(document: str, pages: Sequence[PageFile], steps: Sequence[str], seed: int) -> Iterator[Sheet]:
    """Yield what to degrade, in the order and on the sheets that the page families leave."""
    files = [page.path for page in pages]
    grid = (1, 1)
    for step in steps:
        family, _, severity = step.partition(":")
        if family == "page_stitch":
            grid = _STITCH[int(severity) - 1]
        elif family in PAGE_FAMILIES:
            files = [files[index] for index in arrange(len(files), family, int(severity), rng(seed, document, family))]
    size = grid[0] * grid[1]
    for number, start in enumerate(range(0, len(files), size), start=1):
        yield Sheet(document, number, tuple(map(str, files[start : start + size])), grid)


def safe_name(text: str) -> str:
    """Turn a variant's name into a folder name."""
    return re.sub(r"[^\w.+-]+", "_", text) or "variant"
