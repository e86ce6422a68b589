"""`snellen second-opinion`: another harness's number, ours beside it, and the replies where the two part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...cli.import_command import IMPORTING, given_settings
from ...cli.options import MACHINE, PATH, print_json

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
