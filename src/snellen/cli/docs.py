"""`snellen docs`: texts into pages, pages into degraded pages, needles into documents to ask about."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click
import msgspec

from ..core.config import parse_assignment
from ..core.errors import UsageError

RENDER_EXAMPLE = """
\b
Examples:
  snellen docs render book.txt -o pages/clean
  snellen docs render data.json -o vqa/longbenchv2_img --preset seed --dpi 96
  snellen docs render data.json -o vqa/r2 --ratio 2 --family qwen2.5-vl
"""
PERTURB_EXAMPLE = """
\b
Examples:
  snellen docs perturb vqa/longbenchv2_img -o vqa/adv_jpeg_10 --family jpeg --severity 3
  snellen docs perturb vqa/longbenchv2_img -o vqa --recipe recipe.toml
"""
NEEDLE_EXAMPLE = """
\b
Examples:
  snellen docs needle --lengths 4k,8k --depths 5 -o niah
  snellen docs needle --haystack book.txt --lengths 8k,16k,32k --depths 11 --kinds kv-number,two-hop,absent -o niah
  snellen docs needle --kinds visual --variant dpi56:dpi=56 --variant dense:size_pt=7 -o niah
"""
STYLE_OPTIONS = (
    click.option("--preset", default="seed", show_default=True, help="Page style: seed, glyph or dense."),
    click.option("--dpi", type=float, help="Pixels per inch."),
    click.option("--font", help="Family name, file, or built-in."),
    click.option("--size", "size_pt", type=float, help="Font size in points."),
    click.option("--leading", "leading_pt", type=float, help="Line height in points."),
    click.option("--margin", "margin_pt", type=float, help="Margins in points."),
    click.option("--page-size", metavar="WxH", help="Page size in points, e.g. 595x842."),
    click.option("--columns", type=click.IntRange(min=1)),
    click.option("--ink", help="Text colour."),
    click.option("--paper", help="Background colour."),
    click.option("--align", help="left, right, centre or justify."),
    click.option("--newlines", help="keep, space, paragraph or mark."),
    click.option("--crop", help="none, last or all."),
    click.option(
        "--tokenizer", default="chars/4.2", show_default=True, help="chars/N, cl100k, o200k, or a tokenizer folder."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stdout."),
)


def style_options(command: Any) -> Any:
    """Add the options of a page style to a command."""
    for option in reversed(STYLE_OPTIONS):
        command = option(command)
    return command


@click.group()
def docs() -> None:
    """Render texts as pages, degrade pages, plant needles.

    \b
    snellen docs render book.txt -o pages/clean
    snellen docs perturb pages/clean -o pages/blurred --family blur --severity 3
    snellen docs needle --lengths 4k,8k --depths 5 -o niah
    """


@docs.command(epilog=RENDER_EXAMPLE)
@click.argument("source", type=click.Path(exists=True, path_type=Path), metavar="INPUT")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="Variant folder: images/, lines/, manifest.json.",
)
@click.option("--variant", help="Re-render as a degradation: dpi_render:1-5, dense_text:N, typography:N.")
@click.option("--ratio", type=float, help="Solve the font size for this many text tokens per visual token.")
@click.option(
    "--family", default="qwen2.5-vl", show_default=True, help="Model family whose visual tokens --ratio counts."
)
@style_options
def render(
    *,
    source: Path,
    output: Path,
    variant: str | None,
    ratio: float | None,
    family: str,
    tokenizer: str,
    as_json: bool,
    **flags: Any,
) -> int:
    """Render INPUT (text, markdown, LongBench-v2 JSON, a folder, a PDF) as page images."""
    from ..data.documents.page_style import degrade_style
    from ..data.documents.publish import publish, publish_pdf, solve_size, source_record
    from ..data.documents.texts import read_documents

    style = _style(flags)
    if source.suffix.lower() == ".pdf":
        manifest = publish_pdf(source, output, style.dpi)
    else:
        if variant:
            name, _, severity = variant.partition(":")
            style = degrade_style(style, name, int(severity) if severity.isdigit() else 1)
        if ratio:
            sample = next(iter(read_documents(source))).text
            style = solve_size(sample, style, ratio, family, tokenizer)
        manifest = publish(read_documents(source), output, style, tokenizer=tokenizer, source=source_record(source))
    _print_manifest(manifest, output, as_json)
    return 0


@docs.command(epilog=PERTURB_EXAMPLE)
@click.argument("source", type=click.Path(exists=True, path_type=Path, file_okay=False), metavar="DIR")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="New variant folder (with --recipe: their parent).",
)
@click.option("--family", help="Degradation: jpeg, blur, rotation … (see `snellen docs families`).")
@click.option("--severity", type=click.IntRange(1, 5), default=3, show_default=True)
@click.option("--chain", help="Several in order, e.g. rotation:1+blur:2+jpeg:3.")
@click.option(
    "--recipe", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="TOML file with many variants."
)
@click.option("--reader", help="Also measure the character error rate with this reader, e.g. reader/tesseract.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stdout.")
def perturb(
    *,
    source: Path,
    output: Path,
    family: str | None,
    severity: int,
    chain: str | None,
    recipe: Path | None,
    reader: str | None,
    seed: int,
    as_json: bool,
) -> int:
    """Degrade the pages of DIR into a new variant folder; the clean pages stay as they are."""
    from ..data.degrade.degrade_folder import Variant, degrade, read_recipe, safe_name

    if sum(option is not None for option in (family, chain, recipe)) != 1:
        raise UsageError("name one of --family, --chain or --recipe")
    variants = (
        read_recipe(recipe).variants()
        if recipe
        else [Variant(tuple(chain.split("+")) if chain else (f"{family}:{severity}",))]
    )
    with _transcriber(reader) as transcribe:
        for variant in variants:
            target = output / safe_name(variant.folder) if recipe else output
            manifest = degrade(
                source, target, variant.steps, seed if variant.seed is None else variant.seed, transcribe
            )
            _print_manifest(manifest, target, as_json)
    return 0


@docs.command()
@click.argument("data", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="DATA.json")
@click.option(
    "--images",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of page images.",
)
@click.option("--reader", default="reader/tesseract", show_default=True, help="Model that reads the pages.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="Data file with a transcript of each document.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON on stdout.")
def transcribe(*, data: Path, images: Path, reader: str, output: Path, as_json: bool) -> int:
    """Read the pages of every document, for the control that asks about the transcript instead of the pictures.

    Example: snellen docs transcribe niah/data.json --images niah/clean -o niah/transcribed.json
    """
    from ..api.documents import transcribe_documents

    summary = transcribe_documents(data, images, output, reader)
    _print(summary, f"{output}: {summary['documents']} documents, {summary['without_pages']} without pages", as_json)
    return 0


@docs.command(epilog=NEEDLE_EXAMPLE)
@click.option("--haystack", default="built-in", show_default=True, help="Text, .gz, folder, or built-in.")
@click.option("--lengths", default="4k,8k", show_default=True, help="Token lengths, e.g. 8k,16k,32k.")
@click.option("--depths", default="11", show_default=True, help="How many from 0 to 100 %, or percentages 0,50,100.")
@click.option("--kinds", default="kv-number", show_default=True, help="Comma-separated kinds, or text, visual, all.")
@click.option(
    "--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="Questions per length × depth × kind."
)
@click.option(
    "--per-document", type=click.IntRange(min=1), default=5, show_default=True, help="Questions per document."
)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME:FIELD=VALUE,…",
    help="A further rendering beside `clean`. Repeatable.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder: data.json and VARIANT/images."
)
@style_options
def needle(
    *, output: Path, haystack: str, lengths: str, depths: str, kinds: str, tokenizer: str, as_json: bool, **flags: Any
) -> int:
    """Plant needles in a haystack at known depths and render the documents."""
    from ..data.needles.grid_folder import write_needles
    from ..data.needles.haystack import parse_lengths, read_haystack
    from ..data.needles.needle import check_kinds
    from ..data.needles.plant import Grid, parse_depths

    seed, repeats, per_document = flags.pop("seed"), flags.pop("repeats"), flags.pop("per_document")
    variants = flags.pop("variants")
    style = _style(flags)
    tokens = parse_lengths(lengths)
    chosen = check_kinds([kind.strip() for kind in kinds.split(",") if kind.strip()])
    grid = Grid(tuple(tokens), parse_depths(depths), tuple(chosen), repeats, per_document, tokenizer, seed)
    styles = {"clean": style} | {
        name: _variant_style(style, fields) for name, _, fields in (each.partition(":") for each in variants)
    }
    summary = write_needles(read_haystack(haystack, max(tokens), seed), grid, output, styles)
    _print(summary, f"{summary['documents']} documents, {summary['questions']} questions: {summary['data']}", as_json)
    return 0


@docs.command()
@click.option("--json", "as_json", is_flag=True, help="Print as JSON on stdout.")
def families(as_json: bool) -> int:
    """List degradations with their levels at severities 1–5, needle kinds, and model families with token formulas."""
    from ..data.degrade.degrade_folder import PAGE_FAMILIES
    from ..data.degrade.perturb import FAMILIES
    from ..data.documents.page_style import render_families
    from ..data.documents.visual_tokens import FAMILIES as MODEL_FAMILIES
    from ..data.needles.needle import kinds

    summary = {
        "perturb": {name: list(family.levels) for name, family in FAMILIES.items()},
        "pages": list(PAGE_FAMILIES),
        "render": list(render_families()),
        "needles": list(kinds()),
        "models": list(MODEL_FAMILIES),
    }
    lines = [f"{name:32} {'  '.join(map(str, levels))}" for name, levels in summary["perturb"].items()]  # type: ignore[attr-defined]
    lines += [f"{kind}: {', '.join(summary[kind])}" for kind in ("pages", "render", "needles", "models")]
    _print(summary, "\n".join(lines), as_json)
    return 0


@docs.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="RUN")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder for the files.  [default: RUN/plots]")
@click.option("--json", "as_json", is_flag=True, help="Print the files as JSON on stdout.")
def plot(*, run: Path, output: Path | None, as_json: bool) -> int:
    """Draw a run's heat maps and curves as SVG, PNG and CSV.

    Example: snellen docs plot runs/niah--reader -o plots
    """
    from ..report.pages.document_plots import write_plots

    files = write_plots(run, output or run / "plots")
    _print({"files": [str(file) for file in files]}, "\n".join(map(str, files)) or "nothing to draw", as_json)
    return 0


def _style(flags: dict[str, Any]) -> Any:
    from ..data.documents.page_style import style_of

    preset, size = flags.pop("preset"), flags.pop("page_size")
    told = {name: value for name, value in flags.items() if value is not None}
    if size:
        width, _, height = size.lower().partition("x")
        told |= {"width_pt": width, "height_pt": height}
    if "size_pt" in told and "leading_pt" not in told:
        told["leading_pt"] = told["size_pt"] + 1
    return style_of(preset, told)


def _transcriber(reader: str | None) -> AbstractContextManager[Any]:
    from ..api.documents import transcriber

    return transcriber(reader) if reader else nullcontext()


def _variant_style(style: Any, fields: str) -> Any:
    from ..core.config import convert
    from ..data.documents.page_style import PageStyle

    changes = dict(parse_assignment(part) for part in fields.split(",") if part)
    if "size_pt" in changes and "leading_pt" not in changes:
        changes["leading_pt"] = changes["size_pt"] + 1
    return convert(msgspec.structs.asdict(style) | changes, PageStyle, f"--variant {fields!r}")


def _print_manifest(manifest: Any, folder: Path, as_json: bool) -> None:
    from ..data.documents.manifest import total_tokens

    pages = sum(len(document.pages) for document in manifest.documents.values())
    text, visual, ratio = total_tokens(manifest)
    missing = {
        name: document.missing_glyph_share
        for name, document in manifest.documents.items()
        if document.missing_glyph_share
    }
    summary = {
        "folder": str(folder), "documents": len(manifest.documents), "pages": pages, "text_tokens": text,
        "visual_tokens": visual, "compression_ratio": ratio, "missing_glyphs": missing,
    }  # fmt: skip
    shown = ", ".join(f"{family} {value:g}" for family, value in list(ratio.items())[:4])
    line = f"{folder}: {len(manifest.documents)} documents, {pages} pages" + (
        f"; text tokens per visual token: {shown}" if shown else ""
    )
    if missing:
        line += f"\nwarning: {len(missing)} documents hold characters no font has (worst {max(missing.values()):.1%}); see manifest.json"
    _print(summary, line, as_json)


def _print(summary: dict[str, Any], text: str, as_json: bool) -> None:
    click.echo(msgspec.json.encode(summary).decode() if as_json else text)
