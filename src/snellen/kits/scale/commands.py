"""`snellen cluster`: look at a Ray cluster before a run does."""

from __future__ import annotations

from pathlib import Path

import click

from ...cli.options import MACHINE, PATH, flag, print_json, repeated

EXAMPLE = "\b\nExample:\n  snellen cluster check --ray-address auto --model hf/PATH"


@click.group()
def cluster() -> None:
    """Look at a Ray cluster before a run does."""


@cluster.command(epilog=EXAMPLE)
@click.option("--ray-address", help="The cluster's head: auto, HOST:PORT.  [default: $RAY_ADDRESS, or this machine]")
@click.option("--model", help="Also try to make this model on every node.")
@click.option("--base-url", "--url", help="Where it is served.")
@repeated("--plugin", "plugins", type=PATH, help="Python file with register(registry).")
@flag("--load", "loads_weights", help="Load the weights of a local model, too.")
@MACHINE
def check(
    *,
    ray_address: str | None,
    model: str | None,
    base_url: str | None,
    plugins: tuple[Path, ...],
    loads_weights: bool,
    as_json: bool,
) -> int:
    """Say of every node what it has and what is wrong: versions, GPUs, disk, the model. Exit 3 if anything is.

    Data need not be there: pictures travel with the questions.
    """
    from ...api.settings import RunSettings
    from .executor import MAKER
    from .links import Recipe
    from .ray_cluster import RayCluster
    from .ray_survey import survey_nodes

    recipe = None
    if model:
        settings = RunSettings(tasks=(), model=model, base_url=base_url, plugins=plugins)
        recipe = Recipe(MAKER, settings, str(Path.cwd()))
    cluster = RayCluster(ray_address)
    try:
        reports = survey_nodes(cluster, recipe, loads_weights=loads_weights or bool(base_url))
    finally:
        cluster.close()
    if as_json:
        print_json([report._asdict() for report in reports])
    else:
        for report in reports:
            click.echo(f"{'ok ' if report.ok else 'BAD'} {report.node:16} {report.has}")
            for problem in report.problems:
                click.echo(f"    {problem}")
    return 0 if reports and all(report.ok for report in reports) else 3
