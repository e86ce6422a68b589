"""`snellen merge`: the parts of a run to the run that one process would have left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...cli.options import FOLDER, MACHINE_STDOUT, flag, print_json, shared
from ...core.text import plural

if TYPE_CHECKING:
    from ...api.parts import Merged, PartState

NAMED = 8
"""So many parts are named one by one."""


@click.command(epilog="\b\nExamples:\n  snellen merge shared/run\n  snellen merge --partial shared/run")
@click.argument("run", type=FOLDER)
@flag("--partial", help="Although parts are missing: their trials count as not yet asked.")
@flag("--tidy", help="Remove the parts' logs once the run is whole: run.db has all of it.")
@flag("--same-model", help="Although parts were asked at other servers: they serve the same model.")
@shared("plugins")
@MACHINE_STDOUT
def merge(run: Path, *, partial: bool, tidy: bool, same_model: bool, plugins: tuple[Path, ...], as_json: bool) -> int:
    """Join the parts of a run (`snellen run --shard 3/64`) into run.db, score it and write its files.

    It may be repeated at any time, also while parts still run: what is new is added. Exit 1, and nothing is written,
    if trials are missing and --partial was not said.
    """
    from ...api.parts import look_at_parts
    from ...api.parts import merge as merge_parts
    from ...core.builtins import default_registry

    found, results = merge_parts(
        run, partial=partial, tidy=tidy, same_model=same_model, registry=default_registry(plugins)
    )
    states = look_at_parts(run) if found.missing else []
    if as_json:
        left = {str(one.part.index): one.state for one in states if one.state != "complete"}
        told = {name: value for name, value in found._asdict().items() if name != "header"}
        print_json(told | {"missing": found.missing, "parts_left": left, "results": results or None})
    else:
        for line in merge_lines(run, found, states, partial=partial):
            click.echo(line)
    return 1 if found.missing and not partial else 0


def merge_lines(run: Path, found: Merged, states: list[PartState], *, partial: bool) -> list[str]:
    """Return what a merge found, in words."""
    lines = [f"{found.stored:,} of {plural(found.planned, 'trial')} are there"]
    if found.asked_twice:
        differ = f", {found.differ:,} of them answered differently" if found.differ else ""
        lines.append(f"{plural(found.asked_twice, 'trial')} asked twice{differ}: the first reply counts")
    if found.damaged:
        lines.append(f"{plural(found.damaged, 'place')} of the logs could not be read; what stood there is asked again")
    lines += [f"{name} has no readable head: nothing of it was taken" for name in found.unreadable]
    left = [one for one in states if one.state != "complete"]
    if left:
        named = ", ".join(f"{one.part.index} {one.state}" for one in left[:NAMED])
        more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
        lines.append(f"parts of {left[0].part.count} that are not complete: {named}{more}")
    if found.missing:
        say = "not yet asked" if partial else "missing: nothing was written; --partial merges what is there"
        lines.append(f"{plural(found.missing, 'trial')} {say}")
    if partial or not found.missing:
        lines.append(f"results {run / 'results.json'} · every trial {run / 'records.jsonl'} · snellen show {run}")
    return lines
