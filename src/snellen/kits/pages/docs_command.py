"""`snellen docs`: texts into pages, pages into degraded pages, needles into documents to ask about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...cli.options import (
    COUNT,
    FILE,
    FOLDER,
    JSON,
    PATH,
    SEED,
    WORKERS,
    add_options,
    defaulted,
    json_flag,
    print_either,
    repeated,
    take_workers,
)
from ...core.config import parse_assignment
from ...core.errors import UsageError
from ...core.text import plural

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
NEEDLE_GRID = (
    "haystack",
    "lengths",
    "depths",
    "kinds",
    "tokenizer",
    "repeats",
    "per_document",
    "seed",
    "missing_glyphs",
)
MISSING_HELP = "Characters that no installed font has: refuse the text, or mark them with boxes and count them."
STYLE_OPTIONS = add_options(
    defaulted("--preset", default="seed", help="Page style: seed, glyph or dense."),
    click.option("--dpi", type=float, help="Pixels per inch."),
    click.option("--font", help="Family name, file, or built-in."),
    click.option("--size", "size_pt", type=float, help="Font size in points."),
    click.option("--leading", "leading_pt", type=float, help="Line height in points."),
    click.option("--margin", "margin_pt", type=float, help="Margins in points."),
    click.option("--page-size", metavar="WxH", help="Page size in points, e.g. 595x842."),
    click.option("--columns", type=COUNT),
    click.option("--ink", help="Text colour."),
    click.option("--paper", help="Background colour."),
    click.option("--align", help="left, right, centre or justify."),
    click.option("--newlines", help="keep, space, paragraph or mark."),
    click.option("--crop", help="none, last or all."),
    defaulted("--missing-glyphs", type=click.Choice(["refuse", "mark"]), default="refuse", help=MISSING_HELP),
    defaulted("--tokenizer", default="chars/4.2", help="chars/N, cl100k, o200k, or a tokenizer folder."),
    JSON,
)


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
@click.option("-o", "--output", required=True, type=PATH, help="Variant folder: images/, lines/, manifest.json.")
@click.option("--variant", help="Re-render as a degradation: dpi_render:1-5, dense_text:N, typography:N.")
@click.option("--ratio", type=float, help="Solve the font size for this many text tokens per visual token.")
@defaulted("--family", default="qwen2.5-vl", help="Model family whose visual tokens --ratio counts.")
@STYLE_OPTIONS
@WORKERS
def render(*, source: Path, output: Path, as_json: bool, **flags: Any) -> int:
    """Render INPUT (text, markdown, LongBench-v2 JSON, a folder, a PDF) as page images."""
    from .library import make_style, render_pages

    how = {name: flags.pop(name) for name in ("variant", "ratio", "family", "tokenizer", "missing_glyphs")}
    how["mapper"] = take_workers(flags)
    _print_pages(render_pages(source, output, make_style(**flags), **how), as_json)
    return 0


@docs.command(epilog=PERTURB_EXAMPLE)
@click.argument("source", type=FOLDER, metavar="DIR")
@click.option("-o", "--output", required=True, type=PATH, help="New variant folder (with --recipe: their parent).")
@click.option("--family", help="Degradation: jpeg, blur, rotation … (see `snellen docs families`).")
@defaulted("--severity", type=click.IntRange(1, 5), default=3)
@click.option("--chain", help="Several in order, e.g. rotation:1+blur:2+jpeg:3.")
@click.option("--recipe", type=FILE, help="TOML file with many variants.")
@click.option("--reader", help="Also measure the character error rate with this reader, e.g. reader/tesseract.")
@SEED
@WORKERS
@JSON
def perturb(
    *, source: Path, output: Path, family: str | None, severity: int, chain: str | None, as_json: bool, **how: Any
) -> int:
    """Degrade the pages of DIR into a new variant folder; the clean pages stay as they are."""
    from .library import degrade_pages

    if sum(option is not None for option in (family, chain, how["recipe"])) != 1:
        raise UsageError("name one of --family, --chain or --recipe")
    steps = chain.split("+") if chain else [f"{family}:{severity}"] if family else []
    mapper = take_workers(how)
    for summary in degrade_pages(source, output, steps, mapper=mapper, **how):
        _print_pages(summary, as_json)
    return 0


@docs.command()
@click.argument("data", type=FILE, metavar="DATA.json")
@click.option("--images", required=True, type=FOLDER, help="Folder of page images.")
@defaulted("--reader", default="reader/tesseract", help="Model that reads the pages.")
@click.option("-o", "--output", required=True, type=PATH, help="Data file with a transcript of each document.")
@JSON
def transcribe(*, data: Path, images: Path, reader: str, output: Path, as_json: bool) -> int:
    """Read the pages of every document, for the control that asks about the transcript instead of the pictures.

    Example: snellen docs transcribe niah/data.json --images niah/clean -o niah/transcribed.json
    """
    from .questions import transcribe_documents

    summary = transcribe_documents(data, images, output, reader)
    text = f"{output}: {summary['documents']} documents, {summary['without_pages']} without pages"
    print_either(summary, text, as_json)
    return 0


@docs.command(epilog=NEEDLE_EXAMPLE)
@defaulted("--haystack", default="built-in", help="Text, .gz, folder, or built-in.")
@defaulted("--lengths", default="4k,8k", help="Token lengths, e.g. 8k,16k,32k.")
@defaulted("--depths", default="11", help="How many from 0 to 100 %, or percentages 0,50,100.")
@defaulted("--kinds", default="kv-number", help="Comma-separated kinds, or text, visual, all.")
@defaulted("--repeats", type=COUNT, default=1, help="Questions per length × depth × kind.")
@defaulted("--per-document", type=COUNT, default=5, help="Questions per document.")
@repeated("--variant", "variants", metavar="NAME:FIELD=VALUE,…", help="A further rendering beside `clean`. Repeatable.")
@SEED
@click.option("-o", "--output", required=True, type=PATH, help="Folder: data.json and VARIANT/images.")
@STYLE_OPTIONS
@WORKERS
def needle(*, output: Path, variants: tuple[str, ...], as_json: bool, **flags: Any) -> int:
    """Plant needles in a haystack at known depths and render the documents."""
    from .library import CLEAN, change_style, make_style, plant_needles

    grid = {name: flags.pop(name) for name in NEEDLE_GRID} | {"mapper": take_workers(flags)}
    style = make_style(**flags)
    styles = {CLEAN: style}
    for name, _, fields in (variant.partition(":") for variant in variants):
        changes = dict(parse_assignment(part) for part in fields.split(",") if part)
        styles[name] = change_style(style, changes, f"--variant {fields!r}")
    summary = plant_needles(output, styles, **grid)
    text = f"{plural(summary['documents'], 'document')}, {plural(summary['questions'], 'question')}: {summary['data']}"
    print_either(summary, text, as_json)
    return 0


@docs.command()
@json_flag(help="Print as JSON on stdout.")
def families(as_json: bool) -> int:
    """List degradations with their levels at severities 1–5, needle kinds, and model families with token formulas."""
    from .library import list_families

    summary = list_families()
    lines = [f"{name:32} {'  '.join(map(str, levels))}" for name, levels in summary["perturb"].items()]
    lines += [f"{kind}: {', '.join(summary[kind])}" for kind in ("pages", "render", "needles", "models")]
    print_either(summary, "\n".join(lines), as_json)
    return 0


@docs.command()
@click.argument("run", type=FOLDER, metavar="RUN")
@click.option("-o", "--output", type=PATH, help="Folder for the files.  [default: RUN/plots]")
@json_flag(help="Print the files as JSON on stdout.")
def plot(*, run: Path, output: Path | None, as_json: bool) -> int:
    """Draw a run's heat maps and curves as SVG, PNG and CSV.

    Example: snellen docs plot runs/niah--reader -o plots
    """
    from .questions import plot_documents

    files = [str(file) for file in plot_documents(run, output)]
    print_either({"files": files}, "\n".join(files) or "nothing to draw", as_json)
    return 0


def _print_pages(summary: dict[str, Any], as_json: bool) -> None:
    shown = ", ".join(f"{family} {value:g}" for family, value in list(summary["compression_ratio"].items())[:4])
    line = f"{summary['folder']}: {plural(summary['documents'], 'document')}, {plural(summary['pages'], 'page')}"
    line += f"; text tokens per visual token: {shown}" if shown else ""
    missing, faces = summary["missing_glyphs"], summary["fallback_faces"]
    if faces:
        line += f"\nalso drawn with: {', '.join(faces)}"
    if missing:
        line += f"\nwarning: {len(missing)} documents hold characters no font has, drawn as boxes"
        line += f" (worst {max(missing.values()):.1%}); see manifest.json"
    given, drawn = summary["words_given"], summary["words_drawn"]
    if given != drawn:
        line += f"\nwarning: {given:,} words were given and {drawn:,} stand apart on the pages; see manifest.json"
    print_either(summary, line, as_json)
