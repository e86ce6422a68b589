"""`snellen import` and `snellen second-opinion`: predictions made elsewhere as runs, and their number beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from ...cli.options import CATALOGS, MACHINE, PATH, RegisteredNames, add_options, print_either, print_json
from ...cli.report import DETAILS, read_details
from ...cli.score import READING, given_settings
from ...core.errors import DataError, SnellenError
from ...core.text import plural

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
    "--export", "form", type=RegisteredNames("export"), help="Write each run out again in the form of another tool."
)
@click.option(
    "--as-data", type=PATH, help="Write the questions alone as rows (.jsonl) for `snellen run`; no run is made."
)
@click.option("--export-to", type=PATH, help="Folder for what --export writes.  [default: RUN/export]")
@DETAILS
@MACHINE
def import_command(
    *,
    paths: tuple[Path, ...],
    form: str | None,
    as_data: Path | None,
    export_to: Path | None,
    details: tuple[str, ...],
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
    told = read_details(details, form)
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
            _import(path, form, export_to, details=told, as_json=as_json, settings=settings)
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
    from .foreign_runs import take_questions

    given = given_settings(settings)
    useless = sorted(given.keys() - {"harness", "columns", "repeated"})
    if useless or form or len(paths) > 1:
        raise click.UsageError("--as-data writes the questions of one file: only --from, --map and --repeated fit it")
    done = take_questions(paths[0], target, **given)
    words = f"{plural(done.questions, 'question')} with {plural(done.pictures, 'picture')} in {done.path}"
    for line in done.notes:
        click.echo(line, err=True)
    print_either(done, words, as_json)


def _import(
    path: Path,
    form: str | None,
    export_to: Path | None,
    *,
    details: Mapping[str, str],
    as_json: bool,
    settings: Mapping[str, Any],
) -> None:
    from ...api.outputs import export
    from .foreign_runs import import_predictions

    done = import_predictions(path, **given_settings(settings), command=f"snellen import {path}")
    files, notes = export(done.folder, form, export_to or done.folder / "export", details) if form else ([], [])
    if as_json:
        exported = {"exported": files, "export_notes": notes} if form else {}
        print_json({"folder": done.folder, **done.about, **exported, "results": done.results["tasks"]})
        return
    _print(done.folder, done.about, done.results)
    for line in (*map(str, files), *notes):
        click.echo(line)


def _print(folder: Path, about: Mapping[str, Any], results: Mapping[str, Any]) -> None:
    from ...report.console import WholeConsole
    from ...report.terminal import results_table

    for line in _import_lines(about):
        click.echo(line)
    WholeConsole().print(results_table(about["task"], results["tasks"][about["task"]]))
    click.echo(f"{folder}: snellen second-opinion, compare, view, score", err=True)


def _import_lines(about: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was imported, and what the file has lost."""
    from .damage import damage_lines

    failed = f", {plural(about['failed'], 'failed call')}" if about["failed"] else ""
    lost = about["planned"] - about["rows"]
    missing = f", {plural(lost, 'row')} without a prediction" if lost else ""
    rows = plural(about["rows"], "row")
    yield f"{about['harness']}: {rows} of {about['model']} on {about['peer_task']}{failed}{missing}"
    yield from (f"  damage, {line}" for line in damage_lines(about["damage"]))
    yield from (f"  note: {note}" for note in about["notes"])


READ_AS = (
    "Apply this rule for choices: vlmevalkit, lmms-mmmu, lmms-mcq, inspect-choice, …  [default: the benchmark's]; or "
    "for a folder of parsed pages (STEM.md): omnidocbench-1.6, omnidocbench-1.5, olmocr-bench, ocrbench-v2, cc-ocr"
)
PAGE_RULES = ("omnidocbench-1.6", "omnidocbench-1.5", "olmocr-bench", "ocrbench-v2", "cc-ocr")


@click.command("second-opinion")
@click.argument("path", type=PATH)
@click.option("--as", "read_as", metavar="RULE", help=READ_AS)
@IMPORTING
@MACHINE
def second_opinion_command(path: Path, as_json: bool, read_as: str | None, **settings: Any) -> None:
    """Read predictions a second time: the number as their harness computes it, ours with its interval, how many
    replies were misread and in whose favour, how many failures were counted as answers; a list and a page beside the
    run. PATH is a file of predictions, or a run that `snellen import` made.

    \b
    snellen second-opinion outputs/qwen_MMStar.xlsx
    snellen second-opinion rows.jsonl --as lmms-mmmu --json
    snellen second-opinion predictions/ --as omnidocbench-1.6 --data OmniDocBench/
    """
    if read_as in PAGE_RULES:
        _on_pages(path, read_as, as_json, given_settings(settings))
        return
    from .second_opinions import second_opinion

    found = second_opinion(path, read_as=read_as, **given_settings(settings))
    if as_json:
        print_json({"folder": found.folder, **found.summary})
        return
    from ...core.text import show_text
    from .second_opinions import opinion_lines

    for line in opinion_lines(found.summary):
        click.echo(show_text(line))
    click.echo(found.page, err=True)


def _on_pages(path: Path, rule: str, as_json: bool, settings: dict[str, Any]) -> None:
    from ...core.text import show_text
    from ..parsing.page_opinions import opinion_lines, second_page_opinion

    found = second_page_opinion(path, rule, **settings)
    if as_json:
        print_json({"folder": found.folder, **found.summary})
        return
    for line in opinion_lines(found.summary):
        click.echo(show_text(line))
    click.echo(found.page, err=True)
