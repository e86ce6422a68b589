"""`snellen score`: a file of predictions made elsewhere, or a run folder scored again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ..core.config import parse_assignment
from ..core.errors import UsageError
from ..core.registry import Registry
from .options import (
    CATALOGS,
    COUNT,
    EXECUTORS,
    PATH,
    PROTOCOL,
    RegisteredNames,
    add_options,
    defaulted,
    flag,
    json_flag,
    part_tables,
    print_either,
    print_json,
    repeated,
)

DATA = "The benchmark itself (a file or a task): ids, questions and pictures come from it, and lost rows are counted."
JOIN = click.Choice(["id", "order"])
REPEATED = click.Choice(["refuse", "first", "last"])
MAP = "Where a field of your rows stands: response, answer, options, id, verdict …; a path as messages[-1].content."
READING = add_options(
    click.option(
        "--from", "harness", type=RegisteredNames("predictions"), help="Whose files these are.  [default: as they look]"
    ),
    repeated("--map", "columns", metavar="FIELD=PATH", help=MAP),
    click.option("--model", help="Call the model so.  [default: as the files say]"),
    click.option("--data", help=DATA),
    click.option(
        "--join", type=JOIN, help="How rows are found in --data.  [default: id; order where files say only that]"
    ),
    click.option("--repeated", type=REPEATED, help="Which of two contradicting rows counts.  [default: refuse]"),
)


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


def print_scored_file(result: Mapping[str, Any], as_json: bool) -> None:
    """Print the scores of a file for programs or for people."""
    if as_json:
        print_json(result)
        return
    from ..report.console import WholeConsole
    from ..report.terminal import results_table

    console = WholeConsole()
    how = result["protocol"] and f"protocol {result['protocol']}"
    how = how or (f"{result['formulation']}, profile {result['profile']}" if "formulation" in result else "")
    console.print(results_table(", ".join(filter(None, (result["task"], how))), result))
    reasons = ", ".join(f"{count} {reason}" for reason, count in result["reasons"].items())
    outside = f", {result['unscored']} not to be judged" if result["unscored"] else ""
    counts = f"{result['scored']} read, {result['unread']} unread{outside}, {result['failed']} failed of {result['n']}"
    click.echo(f"{counts} {result['unit']}{f' ({reasons})' if reasons else ''}")
    if result["peer"]:
        click.echo(result["peer"]["why"])
    for key, groups in result["groups"].items() if "formulation" in result else ():  # told by --detailed-keys
        for value, metrics in groups.items():
            console.print(results_table(f"{key} = {value}", {"metrics": metrics}))
    for note in result["notes"]:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{result['folder']}: snellen view, compare, score, second-opinion", err=True)


def _print_range(run: Path, errata: Path | None, gold: str | None, as_json: bool) -> int:
    """Print what a run scores under corrected golds; its own results stay as they are."""
    from ..core.builtins import default_registry

    if errata is None:
        raise UsageError(f"--gold {gold} needs the ledger that says so: --errata FILE")
    found = default_registry().get("score-file", "errata")(run, errata, gold)
    print_either(found, "\n".join(one.line() for one in found), as_json)
    return 0


FORMULATIONS = "SingleChoice, Generation, OCROpenEnded, KIEOpenEnded, MultiInference or Consistency (files only)."
REDUCTIONS = "Read log-likelihoods otherwise: sum, mean, per-byte, none, prompt-mean (run folders)."
OPTION_MARK = "SingleChoice files: how options were marked: upper, lower, number, or auto (what record or reply shows)."
PROFILE = "How replies are read: snellen, reform, flageval, …  [default: snellen; of a run, its own]"
BY_FORMULATION = (
    *("infer_method", "eval_stability", "multi_round_eval", "annotations", "detailed_keys", "tokenizer", "option_mark"),
)
BY_CARD = ("task", "protocol", "overrides", "extractor", "extractor_settings")
"""Options of a table whose replies are read as a card's protocol reads them."""
IMPORTED = ("harness", "model", "data", "join", "repeated")
FILES_ONLY = ("formulation", "output", "columns", "task", "overrides", "catalogs", *BY_FORMULATION, *IMPORTED)
EXECUTOR = "Run folders: who scores: this process, processes of this machine, or the nodes of a Ray cluster."
RUNS_ONLY = (
    *("likelihood_reduction", "scorers", "plugins", "judge_name", "judge_model", "base_url", "judge_settings"),
    *("executor", "replicas", "ray_address"),
)
"""Options that say nothing of the other kind of source are refused, never ignored."""
JUDGE_SETTINGS = "Run folders: how the judge is asked, as a run is: rate=2, max_cost=5, deadline_s=600, batch=true."
EXTRACTOR = "Cards: a model that finds answers which the rule leaves unread, where the protocol's own tool asks one."
EXTRACTOR_SETTINGS = "How that model is asked, as a run is: base_url=…, rate=2, max_cost=5, batch=true."
PLUGIN = "Run folders: Python file with register(registry); its scorers are used, or those named by --scorer."
INFER_METHOD = "generation (texts) or likelihood (indices).  [default: as the first prediction is]"
JUDGE_MODEL = "Run folders: the model that judges, provider/name; without it the metric is called otherwise."


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source", type=PATH, required=False)
@click.option("--prediction-file", "--prediction_file", type=PATH, help="SOURCE, as ReForm-Eval's script names it.")
@click.option("--formulation", help=FORMULATIONS)
@click.option("--infer-method", "--infer_method", help=INFER_METHOD)
@flag("--eval-stability", "--eval_stability", help="Also the instability: entropy of the choice over repeats.")
@flag("--multi-round-eval", "--multi_round_eval", help="Also correlation and slope over dialogue rounds.")
@defaulted("--option-mark", "--option_mark", default="auto", help=OPTION_MARK)
@click.option("--task", help="Files: read as a card of `snellen tasks`; rows have id, options, answer, response.")
@PROTOCOL
@CATALOGS
@repeated("-p", "overrides", metavar="KEY=VALUE", help="With --task: override any field of the card.")
@click.option("--profile", help=PROFILE)
@repeated("--scorer", "scorers", help="Run folders: score by this instead of the task's own; may be repeated.")
@repeated("--plugin", "plugins", type=PATH, help=PLUGIN)
@click.option("--likelihood-reduction", help=REDUCTIONS)
@click.option("--annotations", type=PATH, help="Questions with right answers, for MultiInference.")
@repeated("--detailed-keys", "--detailed_keys", help="Group by this field of the annotations; may be repeated.")
@click.option(
    "--convention", help="Cf and Cb of chains: conditional or over-n.  [default: conditional; of a run, its own]"
)
@defaulted("--tokenizer", default="whitespace", help="Captions: whitespace, or ptb (needs Java).")
@READING
@click.option("--output", "-o", type=PATH, help="Files: folder of the run.  [default: runs/TASK--MODEL--…]")
@click.option("--judge", "judge_name", help="Run folders: a judge of the catalog to ask about every reply.")
@click.option("--judge-model", help=JUDGE_MODEL)
@click.option("--base-url", "--url", help="Run folders: where the judging model answers.")
@repeated("--judge-arg", "judge_settings", metavar="SETTING=VALUE", help=JUDGE_SETTINGS)
@click.option(
    "--errata", type=PATH, help="Run folders: a ledger of corrected golds; official, corrected, and the range."
)
@click.option("--gold", help="Of that ledger: as it stood at a date, e.g. 2026-07.  [default: corrected]")
@click.option("--extractor", metavar="MODEL", help=EXTRACTOR)
@repeated("--extractor-arg", "extractor_settings", metavar="SETTING=VALUE", help=EXTRACTOR_SETTINGS)
@defaulted("--executor", type=click.Choice(EXECUTORS), default="local", help=EXECUTOR)
@click.option("--replicas", type=COUNT, help="Processes that score, for --executor processes and ray.  [default: 1]")
@click.option("--ray-address", help="The cluster's head: auto, HOST:PORT; every node must see the run folder.")
@json_flag(help="Print the result as JSON on stdout.")
def score(source: Path | None, prediction_file: Path | None, as_json: bool, **options: Any) -> int:
    """Score predictions that were made elsewhere, or score a run again.

    A file becomes a run (as `snellen import` makes one), so that what was scored can be viewed, compared and ranked. A
    run read otherwise than by its first command is kept beside it: results-NAME.json.

    \b
    snellen score rows.jsonl
    snellen score chats.jsonl --map response=messages[-1].content --data questions.json
    snellen score rows.jsonl --task mmmu-pro --protocol official --json
    snellen score predictions.json --formulation SingleChoice --eval-stability --profile reform --json
    snellen score answers.json --formulation MultiInference --annotations data.json --detailed-keys sub_task
    snellen score rows.jsonl --task blink --protocol official --extractor openai/NAME
    snellen score runs/my-run --profile vqa-scripts
    snellen score runs/my-run --scorer contains
    snellen score runs/my-run --plugin my_scorer.py
    snellen score runs/my-run --executor processes --replicas 8
    snellen score runs/my-run --errata errata.jsonl
    snellen score runs/my-run --judge correctness --judge-model openai/NAME --base-url http://localhost:8000/v1
    """
    source = _one_source(source, prediction_file)
    errata, gold = options.pop("errata"), options.pop("gold")
    if errata is not None or gold is not None:
        return _print_range(source, errata, gold, as_json)
    if (source / "run.db").exists() or (source.is_dir() and not options["harness"]):
        _refuse(FILES_ONLY, f"{source} is a run folder: it says itself what was asked")
        read_as = ("profile", "convention", "protocol", "extractor", "extractor_settings")
        own = {name: options[name] for name in (*read_as, *RUNS_ONLY)}
        return _score_run(source, as_json, **own)
    _refuse(RUNS_ONLY, f"{source} is a file of predictions, not a run folder")
    print_scored_file(_score_file(source, options), as_json)
    return 0


def _one_source(source: Path | None, named: Path | None) -> Path:
    found = source or named
    if found is None or (source and named):
        raise UsageError("say what to score: one file of predictions, or one run folder")
    return found


def _score_file(source: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Score a file by a formulation, by a card, or as it looks; what would be ignored there is refused."""
    from ..api.score import score_file

    if options["formulation"] is not None:
        _refuse((*BY_CARD, "catalogs", "columns", *IMPORTED), f"{source} is scored by --formulation")
        chosen = {name: options[name] for name in BY_FORMULATION}
        chosen["detailed_keys"] = tuple(key for value in chosen["detailed_keys"] for key in value.split(",") if key)
        chosen |= {name: options[name] for name in ("profile", "convention") if options[name]}
        return score_file(source, formulation=options["formulation"], output=options["output"], **chosen)
    _refuse((*BY_FORMULATION, "convention", "profile"), f"{source} is scored by --formulation NAME, or as a run")
    if options["task"] is None:
        _refuse(BY_CARD[1:], f"{source} is scored as it looks; --task NAME scores it by a card")
        given = {name: options[name] for name in ("columns", "catalogs", "output", *IMPORTED)}
        return score_file(source, **given_settings(given))
    _refuse(IMPORTED, f"{source} is read as protocol {options['protocol'] or 'official'} of {options['task']} says")
    given = given_settings(
        {name: options[name] for name in ("task", "protocol", "columns", "catalogs", "output", "extractor")}
    )
    given |= {"extractor_settings": dict(map(parse_assignment, options["extractor_settings"]))}
    return score_file(source, overrides=list(map(parse_assignment, options["overrides"])), **given)


def _refuse(names: tuple[str, ...], why: str) -> None:
    """Refuse flags that were given and would be ignored."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if parameter.name in names and given:
            raise UsageError(f"{parameter.opts[0]} says nothing here: {why}; leave it out")


def _score_run(folder: Path, as_json: bool, **how: Any) -> int:
    """Score the stored replies of a run folder again, and show the tables of that reading."""
    from ..api.score import score as score_run

    for asked in ("judge_settings", "extractor_settings"):
        how[asked] = dict(map(parse_assignment, how[asked]))
    results = score_run(folder, **how, say=lambda words: click.echo(words, err=True))
    if as_json:
        click.echo(json.dumps(results))
    else:
        from ..core.builtins import default_registry

        _print_tables(results["tasks"], default_registry(how["plugins"]))
        click.echo(written_where(folder, results), err=True)
    return 0


def written_where(folder: Path, results: Mapping[str, Any]) -> str:
    """Return which reading was written where."""
    from ..api.stored_results import results_file

    path = results_file(folder, results)
    beside = "" if path.name == "results.json" else "; the run's own reading is unchanged"
    return f"read as {results['run']['reading']['name']}: {path}{beside}"


def _print_tables(tasks: Mapping[str, Mapping[str, Any]], registry: Registry) -> None:
    from ..report.console import WholeConsole
    from ..report.terminal import plain, results_table, sureness_tables
    from ..report.written import protocol_lines

    console = WholeConsole()
    for name, result in tasks.items():
        beside = (*part_tables(result, registry), *sureness_tables(result))
        for table in (results_table(name, result), *beside):
            console.print(table)
        notes = result["notes"] if isinstance(result.get("notes"), list) else ()
        for note in (*protocol_lines(result), *notes):
            console.print(plain(note))
        for key, groups in result.get("groups", {}).items():
            for value, metrics in groups.items():
                console.print(results_table(f"{key} = {value}", {"metrics": metrics}))
