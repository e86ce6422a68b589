"""`snellen data build` and `snellen data export`: datasets from their raw files, and for models outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from ...cli.options import (
    CATALOGS,
    COUNT,
    FOLDER,
    MACHINE,
    PATH,
    WORKERS,
    defaulted,
    flag,
    print_either,
    repeated,
    take_workers,
)
from ...core.text import plural

SOURCES = click.Choice(["raw", "prepared", "hub", "bundle"])
METHODS = click.Choice(["generation", "likelihood"])
BUILD_EXAMPLE = """
\b
Examples:
  snellen data build reform/vqa-v2 --raw ~/vqa -o bundles/vqa-v2
  snellen data build reform/coco-itm --raw ~/coco -o bundles/itm --seed 3 --parquet
"""
EXPORT_EXAMPLE = """
\b
Examples:
  snellen data export reform/vqa-v2 --data-root ~/data -o vqa.json --dataset-duplication 5 --random-instruct
  snellen score vqa_predictions.json --formulation SingleChoice
"""


@click.command(epilog=BUILD_EXAMPLE)
@click.argument("name")
@click.option("--raw", type=FOLDER, help="Folder with the dataset's own files.")
@click.option("--source", type=SOURCES, help="Which kind of files.  [default: raw]")
@click.option("-o", "--output", "out", required=True, type=PATH, help="Bundle folder to write.")
@defaulted("--seed", type=int, default=0, help="Seed of all draws.")
@click.option("--limit", type=COUNT, help="Only the first N samples.")
@flag("--parquet", help="Items as Parquet instead of JSON Lines.")
@repeated("-p", "overrides", metavar="KEY=VALUE", help="Override any field of the card.")
@CATALOGS
@flag("--no-check", help="Do not check the result.")
@WORKERS
@MACHINE
def build(name: str, out: Path, overrides: tuple[str, ...], no_check: bool, as_json: bool, **flags: Any) -> int:
    """Re-formulate a dataset into a portable bundle, and check it."""
    from ...api.bundles import check_data
    from ...cli.data import print_report
    from ...core.config import parse_assignment
    from .bundles import build_bundle, expected_counts

    mapper = take_workers(flags)
    manifest = build_bundle(name, out, overrides=list(map(parse_assignment, overrides)), mapper=mapper, **flags)
    click.echo(f"{plural(manifest.samples, 'sample')} and {plural(manifest.images, 'picture')} in {out}", err=as_json)
    whole = expected_counts(name, flags["catalogs"]).get(flags["source"] or "raw")
    if whole not in (None, manifest.samples) and flags["limit"] is None:
        click.echo(f"note: the whole set is known to give {whole} samples", err=True)
    if no_check:
        return 0
    report = check_data(out)
    print_report(report, as_json, {"bundle": msgspec.to_builtins(manifest)})
    return 1 if report.errors else 0


@click.command(epilog=EXPORT_EXAMPLE)
@click.argument("name")
@click.option("-o", "--output", "out", required=True, type=PATH, help="A .json or .jsonl file; pictures go beside it.")
@click.option("--data-root", type=PATH, help="Folder that holds the datasets.")
@click.option("--source", type=SOURCES)
@click.option("--infer-method", "inference_method", default="generation", type=METHODS)
@click.option("--dataset-duplication", "data_duplication", type=COUNT, default=1)
@flag("--random-instruct")
@flag("--shuffle-options")
@flag("--in-context-sample")
@click.option("--option-mark", type=click.Choice(["upper", "lower", "number", "random"]), default="upper")
@flag("--capitalize")
@click.option("--response-prefix", default="")
@click.option("--style", "preprocessor", default="one", help="How `text` is put together.")
@click.option("--prompt-pack", type=click.Path(exists=True, path_type=Path))
@click.option("--seed", type=int, default=0)
@click.option("--limit", type=COUNT)
@MACHINE
def export(name: str, out: Path, as_json: bool, **flags: Any) -> None:
    """Write a dataset's prompts, options and labels for a model outside; its predictions come back through
    `snellen score`.
    """
    from .bundles import export_items
    from .items import open_dataset

    dataset = open_dataset(name, **{key: value for key, value in flags.items() if value is not None})
    count = export_items(dataset, out)
    print_either({"items": count, "file": out}, f"{plural(count, 'item')} in {out}", as_json)
