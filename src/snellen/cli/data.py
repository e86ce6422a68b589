"""`snellen data`: fetch and verify what a card needs, check and count what is in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from ..core.markup import shorten
from ..core.text import plural, show_text
from .options import (
    CATALOGS,
    MACHINE,
    PATH,
    OpenGroup,
    flag,
    print_either,
    print_json,
)

FETCH_EXAMPLE = """
\b
Examples:
  snellen data fetch mmmu-pro
  snellen data fetch mmbench-en --source tsv --data-root ~/data
"""
VERIFY_EXAMPLE = """
\b
Examples:
  snellen data verify mmmu-pro --path data/mmmu-pro
  snellen data verify mmbench-en --path ~/LMUData/MMBench_DEV_EN.tsv --json
"""
SAID_EVERY = 64 << 20
"""Bytes after which progress is said again."""


@click.command("fetch", epilog=FETCH_EXAMPLE)
@click.argument("name")
@click.option("--source", help="hub, tsv or official.  [default: the first the card knows a place of]")
@click.option("--data-root", type=PATH, help="Folder that holds the datasets.  [default: $SNELLEN_DATA or ./data]")
@flag("--again", help="Fetch although everything is here.")
@CATALOGS
@MACHINE
def fetch(name: str, as_json: bool, **flags: Any) -> None:
    """Bring the data of a benchmark's card: checked, continued where it stopped, offline afterwards."""
    from ..api.card_data import fetch_card_data

    fetched, folder = fetch_card_data(name, progress=_say_progress(), **flags)
    table = {**msgspec.to_builtins(fetched), "folder": str(folder)}
    state = "is here already, unchanged" if fetched.already else "is here"
    revision = f" at {fetched.revision}" if fetched.revision else ""
    text = f"{name} {state}: {folder} ({len(fetched.files)} files of {fetched.origin}{revision})"
    print_either(table, text, as_json)


def _say_progress() -> Any:
    said: dict[str, int] = {}

    def progress(file: str, have: int, total: int | None) -> None:
        if have != total and have - said.get(file, 0) < SAID_EVERY:
            return
        said[file] = have
        of = f" of {total:,}" if total else ""
        click.echo(f"{file}: {have:,}{of} bytes", err=True)

    return progress


@click.command("verify", epilog=VERIFY_EXAMPLE)
@click.argument("name")
@click.option("--path", required=True, type=PATH, help="The table, or the folder it lies in.")
@CATALOGS
@MACHINE
def verify(name: str, path: Path, catalogs: tuple[Path, ...], as_json: bool) -> int:
    """Compare data with a benchmark's card: shape, rows, columns, checksums. Exit 1 where something differs."""
    from ..api.card_data import verify_card_data

    found = verify_card_data(name, path, catalogs)
    print_either(msgspec.to_builtins(found), "\n".join(_verified_lines(found)), as_json)
    return 1 if found.problems else 0


def _verified_lines(found: Any) -> Iterator[str]:
    if found.shape:
        expected = "" if found.expected_rows is None else f" of {found.expected_rows:,}"
        yield f"{found.card}: the {found.shape} form in {', '.join(found.files)}, {found.rows:,}{expected} rows"
    for file, by in found.checked.items():
        yield f"{file}: the checksum is that of {by}"
    yield from (f"note: {note}" for note in found.notes)
    yield from (f"problem: {problem}" for problem in found.problems)
    if not found.problems:
        yield "nothing differs from the card"


MOST_READ = 2_000
"""Characters of a question that a person is shown."""

CHECK_EXAMPLE = """
\b
Examples:
  snellen data check bundles/vqa-v2
  snellen data check my.jsonl --json
"""
STATS_EXAMPLE = """
\b
Examples:
  snellen data stats my.jsonl
  snellen data stats cot_consistency_eval.jsonl --json
"""


@click.group(cls=OpenGroup)
def data() -> None:
    """Fetch, verify, build, check and export datasets."""


data.add_command(fetch)
data.add_command(verify)


@data.command(epilog=CHECK_EXAMPLE)
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@flag("--no-images", help="Do not open the pictures.")
@MACHINE
def check(path: Path, no_images: bool, as_json: bool) -> int:
    """Find defects and biases: labels, options, positions, lengths, balance, duplicates, pictures. Exit 1 on errors."""
    from ..api.bundles import check_data

    report = check_data(path, images=not no_images)
    print_report(report, as_json, {})
    return 1 if report.errors else 0


@data.command(epilog=STATS_EXAMPLE)
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@MACHINE
def stats(path: Path, as_json: bool) -> None:
    """Count what is in a file: samples, options, pictures, words of questions, steps of chains."""
    from ..api.bundles import data_stats

    found = data_stats(path)
    print_either(msgspec.to_builtins(found), "\n".join(_stats_lines(found)), as_json)


def _stats_lines(found: Any) -> list[str]:
    """Return a line for each thing that the data has."""
    chains, steps, words = sum(found.chains.values()), found.steps, found.question_words
    lines = [
        f"{plural(found.samples, 'sample')} ({', '.join(f'{count} {form}' for form, count in found.forms.items())})",
        f"pictures: {found.distinct_pictures} different; of a sample {_numbers(found.pictures)}",
        f"options of a sample: {_numbers(found.options)}",
        f"right answers of a sample: {_numbers(found.answers)}",
    ]
    if found.groups and not chains:
        lines.append(f"groups: {found.groups}")
    if chains:
        lines.append(f"chains: {chains}, of {steps.mean:.2f} steps on average ({_numbers(found.chains)})")
    if found.boxes:
        lines.append(f"boxes of an item: {_numbers(found.boxes)}")
    if words:
        kind = "sub-question" if chains else "question"
        lines.append(f"words of a {kind}: {words.mean:.1f} on average, from {words.least} to {words.most}")
        lines.append(f"words that stand in it: {_shares(found.containing)}")
        lines.append(f"words that begin it: {_shares(found.beginning)}")
    return [show_text(line) for line in lines]


def _numbers(counts: dict[int, int]) -> str:
    return ", ".join(f"{number}: {count}" for number, count in counts.items()) or "none"


def _shares(shares: dict[str, float]) -> str:
    return ", ".join(f"{word} {100 * share:.1f} %" for word, share in shares.items()) or "none of those looked for"


def print_report(report: Any, as_json: bool, more: dict[str, Any]) -> None:
    """Print what a check found, for programs with what more there is to say."""
    if as_json:
        print_json({**msgspec.to_builtins(report), **more})
        return
    from rich.markup import escape
    from rich.table import Table

    from ..report.console import WholeConsole
    from ..report.written import written_share

    console = WholeConsole()
    forms = ", ".join(f"{count} {form}" for form, count in report.forms.items())
    console.print(f"{plural(report.samples, 'sample')} ({forms})")
    figures = Table("text-only guess", "right", "95 %", "chance")
    known = {name: figure for name, figure in report.figures.items() if figure["value"] is not None}
    for name, figure in known.items():
        low, high = figure["ci95"]
        shown = [written_share(share) for share in (figure["value"], low, high, figure["chance"])]
        figures.add_row(name, shown[0], f"{shown[1]} to {shown[2]}", shown[3])
    if known:
        console.print(figures)
    _print_findings(console, report)
    for excerpt in report.excerpts:
        console.print(escape("\n    ".join(map(show_text, _excerpt_lines(excerpt)))))


def _print_findings(console: Any, report: Any) -> None:
    from rich.markup import escape

    for finding in report.findings:
        where = f" ({', '.join(finding.examples)})" if finding.examples else ""
        colour = "red" if finding.level == "error" else "yellow"
        console.print(f"[{colour}]{finding.level}[/] {finding.check}: {escape(show_text(finding.message + where))}")
    if not report.findings:
        console.print("no defect and no bias was found; whether the questions are good, only reading them tells:")


def _excerpt_lines(excerpt: Any) -> list[str]:
    """Return one sample as a person reads it: the question, the options, a mark at what counts as right."""
    known = [f"{'*' if option in excerpt.answers else '-'} {option}" for option in excerpt.options]
    lines = [f"[{excerpt.id}] {excerpt.question}", *(known or [f"* {answer}" for answer in excerpt.answers])]
    return [shorten(line, MOST_READ) for line in lines]
