"""Texts into pages, pages into degraded pages, needles into documents: the jobs of `snellen docs` as library calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec

from ...core.config import convert
from ...core.errors import UsageError
from ...data.files.work import Mapper, do_here
from ...data.images.edits import CALIBRATION
from ...data.visual_tokens import FAMILIES as MODEL_FAMILIES
from .degrade_folder import PAGE_FAMILIES, Recipe, Variant, degrade, read_recipe, safe_name
from .grid_folder import write_needles
from .needle import check_kinds, kinds
from .page_style import PageStyle, degrade_style, render_families, style_of
from .perturb import FAMILIES
from .plant import Grid, parse_depths, parse_lengths, read_haystack
from .publish import REFUSE, Manifest, publish, publish_pdf, solve_size, source_record, total_tokens
from .texts import read_documents

CLEAN = "clean"
"""The name of the rendering that further ones stand beside."""


def make_style(preset: str = "seed", page_size: str | None = None, **fields: Any) -> PageStyle:
    """Return a preset with the fields that are not None replaced; `page_size` is `WxH` in points."""
    changes = {name: value for name, value in fields.items() if value is not None}
    if page_size:
        width, _, height = page_size.lower().partition("x")
        changes |= {"width_pt": width, "height_pt": height}
    return style_of(preset, _with_leading(changes))


def change_style(style: PageStyle, changes: Mapping[str, Any], where: str) -> PageStyle:
    """Return a style with some fields replaced; an error names `where` they were written."""
    return convert(msgspec.structs.asdict(style) | _with_leading(changes), PageStyle, where)


def _with_leading(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Let the line height follow a font size that was set alone."""
    leading = {"leading_pt": changes["size_pt"] + 1} if "size_pt" in changes else {}
    return leading | dict(changes)


def render_pages(
    source: Path,
    output: Path,
    style: PageStyle,
    *,
    tokenizer: str,
    variant: str | None = None,
    ratio: float | None = None,
    family: str = "qwen2.5-vl",
    missing_glyphs: str = REFUSE,
    mapper: Mapper = do_here,
) -> dict[str, Any]:
    """Render a text, a folder of them or a PDF into a variant folder and return what was drawn.

    `variant` (`family:severity`) re-renders as a degradation; `ratio` solves the font size for a model `family`.
    """
    if source.suffix.lower() == ".pdf":
        if mapper is not do_here:
            raise UsageError(f"{source}: the pages of a PDF are drawn by this process: leave out --executor")
        return describe_pages(publish_pdf(source, output, style.dpi), output)
    if variant:
        name, _, severity = variant.partition(":")
        style = degrade_style(style, name, int(severity) if severity.isdigit() else 1)
    if ratio:
        style = solve_size(next(iter(read_documents(source))).text, style, ratio, family, tokenizer)
    how: dict[str, Any] = {"tokenizer": tokenizer, "missing_glyphs": missing_glyphs, "mapper": mapper}
    manifest = publish(read_documents(source), output, style, source=source_record(source), **how)
    return describe_pages(manifest, output)


def degrade_pages(
    source: Path,
    output: Path,
    steps: Sequence[str] = (),
    *,
    recipe: Path | None = None,
    reader: str | None = None,
    seed: int = 0,
    mapper: Mapper = do_here,
) -> Iterator[dict[str, Any]]:
    """Yield what was drawn of each degraded variant: one of `steps` in `output`, or those of a recipe below it.

    With a `reader` (`reader/tesseract`) the manifest also holds the character error rate of every page.
    """
    if bool(steps) == bool(recipe):
        raise UsageError("name one of --family, --chain or --recipe")
    with _transcriber(reader) if reader else nullcontext() as transcribe:
        told = read_recipe(recipe) if recipe else Recipe((Variant(tuple(steps)),))
        for variant in told.variants():
            folder = output / safe_name(variant.folder) if recipe else output
            own_seed = seed if variant.seed is None else variant.seed
            how: dict[str, Any] = {"calibrated": told.calibration, "mapper": mapper}
            made = degrade(source, folder, variant.steps, own_seed, transcribe, **how)
            yield describe_pages(made, folder)


def _transcriber(reader: str) -> Any:
    from .questions import transcriber  # brings the whole engine along, which only a reader needs

    return transcriber(reader)


def plant_needles(
    output: Path,
    styles: Mapping[str, PageStyle],
    *,
    haystack: str,
    lengths: str,
    depths: str,
    kinds: str,
    tokenizer: str,
    repeats: int = 1,
    per_document: int = 5,
    seed: int = 0,
    missing_glyphs: str = REFUSE,
    mapper: Mapper = do_here,
) -> dict[str, Any]:
    """Plant a grid of needles (`4k,8k` by `0,50,100` by kinds), render it in every style, and return what was made."""
    tokens = parse_lengths(lengths)
    chosen = check_kinds([kind.strip() for kind in kinds.split(",") if kind.strip()])
    grid = Grid(tuple(tokens), parse_depths(depths), tuple(chosen), repeats, per_document, tokenizer, seed)
    return write_needles(
        read_haystack(haystack, max(tokens), seed), grid, output, styles, missing_glyphs, mapper=mapper
    )


def list_families() -> dict[str, Any]:
    """Return every degradation with its levels at severities 1–5, and the names of all other families."""
    return {
        "calibration": CALIBRATION,
        "perturb": {name: list(family.levels) for name, family in FAMILIES.items()},
        "pages": list(PAGE_FAMILIES),
        "render": list(render_families()),
        "needles": list(kinds()),
        "models": list(MODEL_FAMILIES),
    }


def describe_pages(manifest: Manifest, folder: Path) -> dict[str, Any]:
    """Return the totals of a variant folder: documents, pages, tokens, and which documents lack glyphs."""
    text, visual, ratio = total_tokens(manifest)
    shares = {name: document.missing_glyph_share for name, document in manifest.documents.items()}
    return {
        "folder": str(folder),
        "documents": len(manifest.documents),
        "pages": sum(len(document.pages) for document in manifest.documents.values()),
        "text_tokens": text,
        "visual_tokens": visual,
        "compression_ratio": ratio,
        "words_given": sum(document.words_given for document in manifest.documents.values()),
        "words_drawn": sum(document.words_drawn for document in manifest.documents.values()),
        "missing_glyphs": {name: share for name, share in shares.items() if share},
        "fallback_faces": sorted(
            {face for document in manifest.documents.values() for face in document.fallback_faces}
        ),
    }
