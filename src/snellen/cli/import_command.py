"""`snellen import`: predictions that another harness made, as a run of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..core.errors import DataError, SnellenError, UsageError
from ..core.text import plural
from .options import CATALOGS, MACHINE, PATH, add_options, print_either, print_json, repeated

FORMATS = (
    *("vlmevalkit", "lmms-eval", "inspect", "flageval", "evalscope", "opencompass", "aisbench"),
    *("lm-eval", "helm", "nemo-evaluator", "every-eval-ever", "openai-evals", "traces", "rows"),
)
BRIDGES = ("eee", "inspect", "otel", "junit", "croissant")
DATA = "The benchmark itself (a file or a task): ids, questions and pictures come from it, and lost rows are counted."
JOIN = click.Choice(["id", "order"])
REPEATED = click.Choice(["refuse", "first", "last"])
MAP = "Where a field of your rows stands: response, answer, options, id, verdict …; a path as messages[-1].content."
READING = add_options(
    click.option(
        "--from", "harness", type=click.Choice(FORMATS), help="Whose files these are.  [default: as they look]"
    ),
    repeated("--map", "columns", metavar="FIELD=PATH", help=MAP),
    click.option("--model", help="Call the model so.  [default: as the files say]"),
    click.option("--data", help=DATA),
    click.option(
        "--join", type=JOIN, help="How rows are found in --data.  [default: id; order where files say only that]"
    ),
    click.option("--repeated", type=REPEATED, help="Which of two contradicting rows counts.  [default: refuse]"),
)
IMPORTING = add_options(
    READING,
    click.option("--task", help="Call the benchmark so.  [default: our name of it, else the harness's]"),
    CATALOGS,
    click.option("-o", "--output", type=PATH, help="Folder of the run.  [default: runs/TASK--MODEL--HARNESS-…]"),
)


@click.command("import")
@click.argument("paths", type=PATH, nargs=-1, required=True, metavar="PATH...")
@IMPORTING
@click.option(
    "--export", "form", type=click.Choice(BRIDGES), help="Write each run out again in the form of another tool."
)
@click.option(
    "--as-data", type=PATH, help="Write the questions alone as rows (.jsonl) for `snellen run`; no run is made."
)
@click.option("--export-to", type=PATH, help="Folder for what --export writes.  [default: RUN/export]")
@MACHINE
def import_command(
    paths: tuple[Path, ...],
    form: str | None,
    as_data: Path | None,
    export_to: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Read predictions of VLMEvalKit (xlsx, tsv, json), lmms-eval, lm-eval, inspect_ai, FlagEvalMM, evalscope,
    OpenCompass, AISBench, HELM, NeMo Evaluator or OpenAI evals, records of Every Eval Ever, exports of Langfuse,
    Phoenix, Weave or MLflow, or rows with id, options, answer and response, into a run.
    Failed calls become failures; what the file has lost is counted and said. Pickles are never read.

    \b
    snellen import outputs/qwen_MMStar.xlsx
    snellen import logs/20260801_120000_samples_mmmu_val.jsonl --data mmmu.parquet --join order
    snellen import outputs/*.xlsx --export eee --export-to converted
    snellen import chats.jsonl --map response=messages[-1].content --map verdict=match
    """
    if as_data is not None:
        _take_questions(paths, as_data, form, as_json, settings)
        return
    if export_to and not form:
        raise click.UsageError("--export-to belongs to --export")
    if len(paths) > 1 and settings.get("output"):
        raise click.UsageError("several files become several runs: leave out -o")
    problems: list[SnellenError] = []
    for path in paths:
        try:
            _import(path, form, export_to, as_json, settings)
        except SnellenError as error:
            if len(paths) == 1:
                raise
            problems.append(error)
            click.echo(f"error: {error}", err=True)
    if problems:
        raise DataError(f"{len(problems)} of {len(paths)} files could not be read; the others are imported")


def _take_questions(
    paths: tuple[Path, ...], target: Path, form: str | None, as_json: bool, settings: Mapping[str, Any]
) -> None:
    from ..api.foreign_runs import take_questions

    given = given_settings(settings)
    useless = sorted(given.keys() - {"harness", "columns", "repeated"})
    if useless or form or len(paths) > 1:
        raise click.UsageError("--as-data writes the questions of one file: only --from, --map and --repeated fit it")
    done = take_questions(paths[0], target, **given)
    words = f"{plural(done.questions, 'question')} with {plural(done.pictures, 'picture')} in {done.path}"
    for line in done.notes:
        click.echo(line, err=True)
    print_either(done, words, as_json)


def _import(path: Path, form: str | None, export_to: Path | None, as_json: bool, settings: Mapping[str, Any]) -> None:
    from ..api.foreign_runs import import_predictions
    from ..api.outputs import export

    done = import_predictions(path, **given_settings(settings), command=f"snellen import {path}")
    files, notes = export(done.folder, form, export_to or done.folder / "export") if form else ([], [])
    if as_json:
        exported = {"exported": files, "export_notes": notes} if form else {}
        print_json({"folder": done.folder, **done.about, **exported, "results": done.results["tasks"]})
        return
    _print(done.folder, done.about, done.results)
    for line in (*map(str, files), *notes):
        click.echo(line)


def given_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that were given: the rest have their defaults where they are used."""
    given = {name: value for name, value in settings.items() if value not in (None, ())}
    return given | ({"columns": dict(map(assigned, given["columns"]))} if "columns" in given else {})


def assigned(text: str) -> tuple[str, str]:
    """Return field and path of FIELD=PATH, both as they are written."""
    field, equals, path = text.partition("=")
    if not equals or not field or not path:
        raise UsageError(f"--map {text!r} is not of the form FIELD=PATH")
    return field.strip(), path.strip()


def _print(folder: Path, about: Mapping[str, Any], results: Mapping[str, Any]) -> None:
    from ..report.console import WholeConsole
    from ..report.terminal import import_lines, results_table

    for line in import_lines(about):
        click.echo(line)
    WholeConsole().print(results_table(about["task"], results["tasks"][about["task"]]))
    click.echo(f"{folder}: snellen second-opinion, compare, view, score", err=True)
