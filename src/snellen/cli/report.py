"""`snellen report`: one page, tables, figures and files of other systems from stored runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from .options import FROM_ZERO, PATH, RegisteredNames, defaulted, flag, json_flag, print_either, repeated

FORMS = RegisteredNames("export")
TABLES = click.Choice(["markdown", "latex", "csv"])
DETAIL = "What only you know of an --export: dataset, task_id, scale; organization; endpoint; gate …; see the guide."
DETAILS = repeated("--detail", "details", metavar="NAME=VALUE", help=DETAIL)
OUTPUT = "Folder for what is written.  [default: RUN/export, RUN/plots, RUN/paper; a comparison: comparison]"


@click.command()
@click.argument("runs", nargs=-1, required=True, type=PATH, metavar="RUN...")
@flag("--compare", "compared", help="Compare several runs on one page: comparison.html.")
@click.option("--baseline", type=PATH, help="A run that the report of RUN is compared with.")
@click.option("--tables", "table_form", type=TABLES, help="Write the tables of a run, or with --compare of all pairs.")
@flag("--figures", "with_figures", help="Write every figure as SVG for papers, with its data; no extra is needed.")
@flag("--notes", "with_notes", help="Write notes and marks as JSON lines.")
@click.option("--export", "form", type=FORMS, help="Write the trials in the form of another system, or as a table.")
@DETAILS
@flag("--plots", "with_plots", help="Write every figure as CSV, Vega-Lite, SVG and PNG (extra `plots`).")
@click.option("-o", "--output", type=PATH, help=OUTPUT)
@defaulted("--picture-mb", type=FROM_ZERO, default=2.0, help="How much of a page pictures may take.")
@json_flag(help="Print the files as JSON on stdout.")
def report(
    *,
    runs: tuple[Path, ...],
    compared: bool,
    baseline: Path | None,
    table_form: str | None,
    with_figures: bool,
    with_notes: bool,
    form: str | None,
    details: tuple[str, ...],
    with_plots: bool,
    output: Path | None,
    picture_mb: float,
    as_json: bool,
) -> None:
    """Write report.html of a run: one file, no network, no script. Options write files for papers and other programs
    instead; --compare takes several runs.

    \b
    snellen report runs/demo
    snellen report runs/demo --baseline runs/before
    snellen report --compare runs/a runs/b runs/c
    snellen report runs/demo --tables latex --figures
    snellen report runs/demo --export reform -o predictions
    snellen report runs/demo --export inspect -o logs
    """
    from ..api import outputs

    others = {"--export": form, "--plots": with_plots, "--figures": with_figures, "--notes": with_notes}
    _refuse_useless(compared, baseline, {**others, "--tables": table_form})
    if compared:
        files = _compare(runs, table_form, output or Path("comparison"), int(picture_mb * 1e6))
        print_either({"files": files}, "\n".join(map(str, files)), as_json)
        return
    if len(runs) > 1:
        raise click.UsageError("several runs are compared: add --compare, or name one run")
    told = read_details(details, form)
    files = list(_files(runs[0], output, table_form, others, told))
    if not files and not form:
        files = [outputs.report(runs[0], picture_bytes=int(picture_mb * 1e6), baseline=baseline)]
    print_either({"files": files}, "\n".join(map(str, files)), as_json)


def read_details(given: tuple[str, ...], form: str | None) -> dict[str, str]:
    """Return what --detail told of the form of --export."""
    told = dict(map(_detail, given))
    if told and not form:
        raise click.UsageError("--detail belongs to --export")
    return told


def _detail(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise click.UsageError(f"--detail {text!r} is not of the form NAME=VALUE")
    return name.strip(), value.strip()


def _files(
    run: Path, output: Path | None, table_form: str | None, wanted: Mapping[str, Any], details: Mapping[str, str]
) -> Iterator[Path]:
    """Yield the files that were asked for instead of the report."""
    from ..api import outputs

    paper = output or run / "paper"
    if wanted["--export"]:
        files, notes = outputs.export(run, wanted["--export"], output or run / "export", details)
        for note in notes:
            click.echo(note, err=True)
        yield from files
    if wanted["--plots"]:
        yield from outputs.plots(run, output or run / "plots")
    if table_form:
        yield from outputs.tables([run], table_form, paper)
    if wanted["--figures"]:
        yield from outputs.figures(run, paper)
    if wanted["--notes"]:
        yield outputs.notes_file(run, paper)


def _refuse_useless(compared: bool, baseline: Path | None, others: dict[str, object]) -> None:
    """Refuse what would be left aside in silence."""
    given = [name for name, value in others.items() if value and not (compared and name == "--tables")]
    if compared and (baseline or given):
        raise click.UsageError(
            f"--compare writes one page of several runs: leave out {given[0] if given else '--baseline'}"
        )
    if baseline and given:
        raise click.UsageError(
            f"--baseline belongs to report.html, and {given[0]} writes other files: ask for one of them"
        )


def _compare(runs: tuple[Path, ...], table_form: str | None, output: Path, picture_bytes: int) -> list[Path]:
    from ..api import outputs

    page = outputs.comparison_report(runs, output / "comparison.html", picture_bytes=picture_bytes)
    return [page, *(outputs.tables(runs, table_form, output) if table_form else ())]
