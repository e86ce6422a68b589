"""`snellen scorer-audit`: which laws a rule for parsed pages breaks."""

from __future__ import annotations

from typing import Any

import click

from ...cli.options import MACHINE, print_json


@click.command("scorer-audit")
@click.argument("names", nargs=-1)
@click.option("--pages", default=24, show_default=True, type=click.IntRange(1, 1000), help="Drawn pages to try.")
@click.option("--seed", default=0, show_default=True, help="Another seed draws other pages.")
@click.option("--markdown", is_flag=True, help="Print one table of all rules and laws, for a document.")
@MACHINE
def scorer_audit(names: tuple[str, ...], pages: int, seed: int, markdown: bool, as_json: bool) -> None:
    """Try eighteen laws that every rule for parsed pages should obey on drawn pages: the gold answer is perfect, an
    empty reply is 0, invented text costs. What breaks one is shown with the smallest example. NAMES are rules: snellen,
    omnidocbench-1.6, olmocr-bench, ocrbench-v2, cc-ocr, pubtabnet; none: all of them.

    \b
    snellen scorer-audit snellen
    snellen scorer-audit omnidocbench-1.6 --pages 60
    """
    from ...core.errors import UsageError, not_among
    from .laws import LAWS, RULES, audit, drawn_pages

    for name in names:
        if name not in RULES:
            raise UsageError(f"rule {not_among(name, RULES, ' is unknown')}")
    test_pages = drawn_pages(pages, seed)
    found = {name: audit(name, test_pages) for name in names or RULES}
    if as_json:
        print_json({name: [_as_dict(one) for one in verdicts] for name, verdicts in found.items()})
    elif markdown:
        for line in law_table(found):
            click.echo(line)
    else:
        for name, verdicts in found.items():
            _print(name, verdicts, [law for law, _ in LAWS])


def _as_dict(verdict: Any) -> dict[str, Any]:
    example = verdict.example
    shown = None
    if example is not None:
        shown = {"gold": example.page.markdown, "reply": example.reply, "why": example.why}
    return {"law": verdict.law, "tried": verdict.tried, "broken": verdict.broken, "example": shown}


def _print(name: str, verdicts: list[Any], laws: list[str]) -> None:
    from ...core.text import show_text

    kept = sum(not verdict.broken for verdict in verdicts)
    click.echo(f"{name}: {kept} of {len(verdicts)} laws hold on {max(v.tried for v in verdicts)} pages")
    for verdict, law in zip(verdicts, laws, strict=True):
        if verdict.example is not None:
            click.echo(f"  law {verdict.law}, {law}: broken on {verdict.broken} of {verdict.tried} pages")
            click.echo(f"    gold  {show_text(verdict.example.page.markdown[:160])!r}")
            click.echo(f"    reply {show_text(verdict.example.reply[:160])!r}")
            click.echo(f"    {verdict.example.why}")


def law_table(found: dict[str, list[Any]]) -> list[str]:
    """Return one table of rules and laws in Markdown: on how many of the pages a law is broken."""
    from .laws import LAWS

    lines = ["| law | " + " | ".join(found) + " |", "|---|" + "---|" * len(found)]
    for number, (law, _) in enumerate(LAWS, start=1):
        cells = [_cell(verdicts[number - 1]) for verdicts in found.values()]
        lines.append(f"| {number} {law} | " + " | ".join(cells) + " |")
    return lines


def _cell(verdict: Any) -> str:
    return "holds" if not verdict.broken else f"broken {verdict.broken}/{verdict.tried}"
