"""`snellen curate`: draft, gates, review and publish, each one call of the library, printed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from ...cli.options import (
    CATALOGS,
    COUNT,
    FILE,
    KEYS,
    NO_CACHE,
    PATH,
    SEED,
    defaulted,
    print_either,
    print_json,
    repeated,
)
from ...cli.run import make_settings
from ...core.config import parse_assignment
from ...core.text import plural

WORKSHOP = click.argument("folder", type=PATH, metavar="DIR")
JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on stdout.")
CHECKER_HELP = "provider/name of an LLM that judges every item with k votes (unique, chain, grounded)."
BLIND_HELP = "provider/name that answers without pictures; repeatable."
SHARE = click.FloatRange(0, 1)
COLUMNS_HELP = "Where id, image, box, clue, inference are (a.b goes deeper)."


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def curate() -> None:
    """Build a dataset of reasoning chains with an LLM and people.

    \b
    snellen curate draft sherlock.json DIR --image-root pictures --model openai/NAME --base-url URL
    snellen curate gates DIR
    snellen curate review DIR --reviewer ana --reviewer ben
    snellen curate publish DIR --licence CC-BY-4.0
    snellen run DIR/published/task.toml --model openai/NAME --base-url URL
    """


@curate.command()
@click.argument("source", type=PATH, metavar="FILE")
@WORKSHOP
@click.option("--model", required=True, help="provider/name of the LLM that drafts.")
@click.option("--base-url", "--url", help="Where an OpenAI-compatible server answers.")
@KEYS
@click.option("--image-root", type=PATH, help="Folder of the pictures; found by the end of their URL.")
@repeated("--map", "columns", metavar="FIELD=COLUMN", help=COLUMNS_HELP)
@defaulted("--prompt", default="draft", help="Card in catalog/curate with the words of drafting.")
@click.option("--limit", type=COUNT, help="Use the first N annotations.")
@click.option("--max-requests", type=COUNT, help="Budget: send at most so many requests; the same command goes on.")
@click.option("--max-workers", type=COUNT, help="Requests in flight at most.  [default: 32]")
@SEED
@NO_CACHE
@CATALOGS
@JSON
def draft(source: Path, folder: Path, as_json: bool, **flags: Any) -> int:
    """Have an LLM write the chain and the wrong candidates for every coarse annotation.

    FILE is in the Sherlock format, or JSON, JSONL or CSV with id, image, box, clue and inference. The same command
    continues.

    \b
    snellen curate draft sherlock.json shop --image-root pictures --model openai/NAME --base-url http://localhost:8000/v1
    """
    from ...cli.run_output import TerminalWatcher
    from .library import draft as run_draft

    columns = {key: str(value) for key, value in map(parse_assignment, flags.pop("columns"))}
    how = {name: flags.pop(name) for name in ("image_root", "prompt")}
    how |= {"requests_at_most": flags.pop("max_requests"), "watcher": TerminalWatcher(quiet=as_json)}
    result = run_draft(source, folder, make_settings("run", flags), columns=columns, **how)
    if as_json:
        print_json(result)
    else:
        cost = f"{result.requests} requests, {result.cached} cached"
        click.echo(f"{result.drafts} of {result.sources} drafted, {result.set_aside} set aside; {cost}")
        _print_reasons(result.reasons)
    if result.interrupted or result.over_budget:
        click.echo("stopped before the end: the same command goes on", err=True)
    return 130 if result.interrupted else int(result.over_budget or result.failed > 0)


@curate.command()
@WORKSHOP
@defaulted("--margin", type=SHARE, default=0.05, help="How far above chance blind judges may be.")
@defaulted("--repair/--no-repair", default=True, help="Make candidates look alike before they are tested.")
@defaulted("--trim/--no-trim", default=True, help="Set aside items that blind judges answer.")
@click.option("--forbid", type=FILE, help="File of words that no item may contain.")
@repeated("--without", "off", metavar="GATE=REASON", help="Switch a gate off; the report and the card say why.")
@click.option("--checker", help=CHECKER_HELP)
@repeated("--blind-model", "blind_models", help=BLIND_HELP)
@click.option("--base-url", "--url", help="Server of the checker and of the blind models.")
@KEYS
@NO_CACHE
@JSON
def gates(folder: Path, as_json: bool, **flags: Any) -> int:
    """Pass the drafts through every gate; exit code 1 when the set as a whole does not pass.

    \b
    snellen curate gates shop --checker openai/NAME --blind-model openai/NAME --base-url http://localhost:8000/v1
    """
    from .library import GateSettings
    from .library import gates as run_gates

    forbid, checker, blind = (flags.pop(name) for name in ("forbid", "checker", "blind_models"))
    words = frozenset(forbid.read_text(encoding="utf-8").casefold().split()) if forbid else frozenset()
    off = dict(text.partition("=")[::2] for text in flags.pop("off"))
    allowed = GateSettings(flags.pop("repair"), flags.pop("trim"), flags.pop("margin"), forbidden=words, off=off)
    asked = make_settings("run", flags | {"model": checker}) if checker else None
    blind_models = [make_settings("run", flags | {"model": model}) for model in blind]
    report = run_gates(folder, allowed, checker=asked, blind_models=blind_models)
    if as_json:
        print_json(report)
    else:
        _print_gates(report)
    return 0 if report.passed else 1


@curate.command()
@WORKSHOP
@repeated("--reviewer", "reviewers", help="A reviewer's name; repeatable; kept for the next time.")
@defaulted("--overlap", type=SHARE, default=0.2, help="Share of items that two people judge.")
@defaulted("--audit", type=click.IntRange(0), default=100, help="Accepted items that are looked at once more.")
@defaulted("--ceiling", type=click.IntRange(0), default=50, help="Accepted items that people answer themselves.")
@SEED
@defaulted("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; 0 picks a free one.")
@JSON
def review(folder: Path, port: int, as_json: bool, **flags: Any) -> int:
    """Open the review page on localhost, with one link for every reviewer, until Ctrl-C.

    \b
    snellen curate review shop --reviewer ana --reviewer ben --overlap 0.3
    """
    from .library import ReviewSettings
    from .library import review as run_review

    def ready(links: dict[str, str], chosen: int, items: int) -> None:
        if as_json:
            print_json({"links": links, "port": chosen, "pid": os.getpid()})
            return
        click.echo(f"{plural(items, 'item')}; each reviewer opens the own link (Ctrl-C ends, nothing is lost):")
        for who, link in links.items():
            click.echo(f"  {who}: {link}")

    run_review(folder, ReviewSettings(**flags) if flags["reviewers"] else None, port, ready)
    return 0


@curate.command()
@WORKSHOP
@click.option("-o", "--output-dir", "out", type=PATH, help="Where to write.  [default: DIR/published]")
@click.option("--name", default="", help="The dataset's name.")
@click.option("--licence", default="", help="The dataset's licence.")
@click.option(
    "--despite-gates", default="", metavar="REASON", help="Publish a set that failed its gates; the card says why."
)
@JSON
def publish(folder: Path, out: Path | None, as_json: bool, **titles: str) -> int:
    """Write the accepted items in the CURE format, with pictures, task file, provenance and data card.

    \b
    snellen curate publish shop --licence CC-BY-4.0
    snellen run shop/published/task.toml --model blind/longest
    """
    from .library import audit_sentence
    from .library import publish as run_publish

    result = run_publish(folder, out, **titles)
    audit, outcomes = audit_sentence(result.card["audit"]), result.card["outcomes"]
    left = ", ".join(f"{outcomes[status]} {status}" for status in ("open", "disputed", "rejected") if outcomes[status])
    text = f"{plural(result.items, 'item')}, {plural(result.questions, 'question')} in {result.folder}; audit: {audit}"
    text += f"; left out: {left}" if left else ""
    if result.card["despite_gates"]:
        text += f"\nfailed gates: {', '.join(result.card['despite_gates']['failed'])}; the card says so and why"
    print_either(result, text, as_json)
    return 0


def _print_reasons(reasons: dict[str, int], most: int = 8) -> None:
    for reason, count in list(reasons.items())[:most]:
        click.echo(f"  {count} × {reason}")


def _print_gates(report: Any) -> None:
    from rich.table import Table

    from ...report.console import WholeConsole

    table = Table(title=f"{report.kept} of {report.drafts} drafts kept", title_justify="left")
    for column in ("gate", "seen", "set aside", "repaired", "noted", "set passes"):
        table.add_column(column, justify="left" if column == "gate" else "right")
    for count in report.gates:
        numbers = map(str, (count.seen, count.failed, count.repaired, count.warned))
        table.add_row(count.gate, *numbers, f"off: {count.off}" if count.off else "yes" if count.passed else "NO")
    console = WholeConsole()
    console.print(table)
    blind = Table(title="answered without the picture", title_justify="left", title_style="dim")
    for column in ("judge", "question", "accuracy", "chance", "n", ""):
        blind.add_column(column, justify="right" if column in ("accuracy", "chance", "n") else "left")
    for test in report.tests:
        verdict = "" if test.passed else "above chance"
        blind.add_row(test.judge, test.role, f"{test.accuracy:.1%}", f"{test.chance:.1%}", str(test.questions), verdict)
    console.print(blind)
    if not report.passed:
        reason = "without the picture the right options are found above chance; see gates.json"
        click.echo(f"the set does not pass: {reason}", err=True)
