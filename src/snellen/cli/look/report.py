"""`snellen report`: one page, plots and files of other systems from a stored run."""

from __future__ import annotations

from pathlib import Path

import click

from ..options import FROM_ZERO, PATH, defaulted, flag, json_flag, print_either

FORMS = click.Choice(["flageval", "reform", "mc", "niah", "aisbench", "jsonl", "csv", "parquet"])


@click.command()
@click.argument("run", type=PATH, metavar="RUN")
@click.option("--export", "form", type=FORMS, help="Write the trials in the form of another system, or as a table.")
@flag("--plots", "with_plots", help="Write every figure as CSV, Vega-Lite, SVG and PNG (extra `plots`).")
@click.option("-o", "--output", type=PATH, help="Folder for exports and plots.  [default: RUN/export, RUN/plots]")
@defaulted("--picture-mb", type=FROM_ZERO, default=2.0, help="How much of report.html pictures may take.")
@json_flag(help="Print the files as JSON on stdout.")
def report(
    *, run: Path, form: str | None, with_plots: bool, output: Path | None, picture_mb: float, as_json: bool
) -> None:
    """Write report.html of a run: one file, no network, no script. With --export or --plots, files for other
    programs instead.

    \b
    snellen report runs/demo
    snellen report runs/demo --export reform -o predictions
    snellen report runs/demo --plots
    """
    from ...api.look import outputs

    files: list[Path] = []
    if form is not None:
        files += outputs.export(run, form, output or run / "export")
    if with_plots:
        files += outputs.plots(run, output or run / "plots")
    if not files:
        files = [outputs.report(run, picture_bytes=int(picture_mb * 1e6))]
    print_either({"files": files}, "\n".join(map(str, files)), as_json)
