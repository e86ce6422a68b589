"""`snellen train`: rationale tuning, a recipe, before and after, merging; each one call of the library, printed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...cli.options import (
    ABOVE_ZERO,
    CATALOGS,
    COUNT,
    FILE,
    FROM_ZERO,
    OVERRIDES,
    PATH,
    SEED,
    defaulted,
    flag,
    json_flag,
    print_json,
    repeated,
)
from ...core.config import convert, parse_assignment, set_by_path
from .recipe import Recipe, check_recipe, read_recipe

if TYPE_CHECKING:
    from .before_after import Evaluated
    from .recipe import Recipe


__all__ = ["Recipe", "check_recipe", "merge_tuned", "read_recipe"]


def merge_tuned(folder: Path, output: Path, base: str | None = None) -> Path:
    """Write base and adapter as whole weights."""
    from .rationale import import_trainers
    from .tuned_weights import merge_adapter

    import_trainers()
    return merge_adapter(folder, output, base)


STAGES = click.Choice(["sft", "feedback"])
TRAINERS = click.Choice(["sft", "control", "dpo", "grpo"])
WEIGHTS = click.Choice(["lora", "full"])
JUDGES = click.Choice(["scorers", "points", "pairs"])
JSON = json_flag(help="Print the result as JSON on stdout; progress goes to stderr.")
DATA_HELP = "Chains: CURE format, task file, published set, messages, ShareGPT, LLaVA; FILE@2 shows it twice."
AGAINST_HELP = "Task whose pictures and texts must not be in the data; repeatable. Refused by default."
SET_HELP = "Any field of the recipe: training.epochs=2, lora.rank=32, trl.beta=0.2."
TRAINER_HELP = "Default: sft, or dpo for feedback."
RATE_HELP = "Default: 1e-4 (adapter by SFT), 1e-5 (by preferences), a tenth for full weights."


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def train() -> None:
    """Tune a model's rationales, and measure what that gained.

    \b
    snellen train rationale --model hf/FOLDER --stage sft --data chains.jsonl -o tuned
    snellen train rationale --model hf/FOLDER --stage feedback --data pictures.jsonl -o better
    snellen train run recipe.toml
    snellen train evaluate hf/FOLDER tuned --task cure -o measured
    snellen train merge tuned -o merged
    """


@train.command()
@click.option("--model", required=True, help="hf/FOLDER of the weights to tune.")
@click.option("--stage", type=STAGES, required=True, help="sft: learn chains; feedback: sample, judge, prefer.")
@repeated("--data", "data", required=True, metavar="FILE[@WEIGHT]", help=DATA_HELP)
@click.option("-o", "--output", type=PATH, required=True, help="Folder of the training; the same command continues.")
@click.option("--image-root", type=PATH, help="Folder of the pictures; else beside the data.")
@click.option("--trainer", type=TRAINERS, help=TRAINER_HELP)
@defaulted("--weights", type=WEIGHTS, default="lora", help="An adapter, or all weights.")
@click.option("--epochs", type=ABOVE_ZERO, help="Times the data is shown.  [default: 1]")
@click.option("--steps", type=COUNT, help="Optimiser steps instead of epochs.")
@click.option("--batch-size", type=COUNT, help="Rows of a portion.  [default: 8]")
@click.option("--accumulate", type=COUNT, help="Portions of a step.  [default: 1]")
@click.option("--learning-rate", type=ABOVE_ZERO, help=RATE_HELP)
@click.option("--save-steps", type=COUNT, help="Steps between checkpoints.  [default: 100]")
@repeated("--report-to", help="tensorboard, wandb, mlflow …; repeatable.")
@click.option("--samples", type=COUNT, help="Feedback: rationales of each question.  [default: 4]")
@click.option("--temperature", type=ABOVE_ZERO, help="Feedback: of the samples.  [default: 1]")
@click.option("--max-tokens", type=COUNT, help="Feedback: of a rationale.  [default: 512]")
@click.option("--judge", type=JUDGES, help="Feedback: our scorers (labelled data) or an LLM.  [default: scorers]")
@click.option("--judge-model", help="Feedback: provider/name of the LLM that judges.")
@click.option("--judge-url", help="Feedback: where it answers.")
@repeated("--against", metavar="TASK", help=AGAINST_HELP)
@flag("--allow-overlap", help="Train although data and benchmark overlap; the card says so.")
@flag("--allow-missing-images", help="Leave records out whose pictures are missing, and count them.")
@flag("--allow-answers", help="Train although no reply has a rationale.")
@repeated("--set", "fields", metavar="FIELD=VALUE", help=SET_HELP)
@flag("--dry-run", help="Prepare and check the data, show one sample and what is learnt of it; train nothing.")
@SEED
@CATALOGS
@JSON
def rationale(as_json: bool, dry_run: bool, **flags: Any) -> int:
    """Tune a model's rationales, from chains (sft) or from judged samples of its own (feedback).

    \b
    snellen train rationale --model hf/FOLDER --stage sft --data chains.jsonl -o tuned
    """
    return _train(_recipe_of(flags), as_json, dry_run)


def _recipe_of(flags: dict[str, Any]) -> Recipe:
    """Return the recipe that the flags write; what is not given has the recipe's own defaults."""

    root = flags["image_root"]
    data = [_source(text, root) for text in flags["data"]]
    trainer = flags["trainer"] or ("sft" if flags["stage"] == "sft" else "dpo")
    names = ("epochs", "steps", "batch_size", "accumulate", "learning_rate", "save_steps")
    training = {"trainer": trainer, "weights": flags["weights"], **{n: flags[n] for n in names if flags[n] is not None}}
    if flags["report_to"]:
        training["report_to"] = list(flags["report_to"])
    names = ("samples", "temperature", "max_tokens", "judge", "judge_model", "judge_url")
    feedback = {name: flags[name] for name in names if flags[name] is not None}
    table: dict[str, Any] = {
        **{name: flags[name] for name in ("model", "stage", "seed", "allow_overlap", "allow_missing_images")},
        **{"allow_answers": flags["allow_answers"], "against": list(flags["against"]), "data": data},
        **{"output": str(flags["output"]), "training": training, "feedback": feedback},
        "catalogs": [str(path) for path in flags["catalogs"]],
    }
    for key, value in map(parse_assignment, flags["fields"]):
        set_by_path(table, key, value)
    return check_recipe(convert(table, Recipe, "snellen train rationale"))


def _source(text: str, root: Path | None) -> dict[str, Any]:
    """Read FILE or FILE@WEIGHT; a file whose name has an @ is taken as it is."""
    path, at, weight = text.rpartition("@")
    source: dict[str, Any] = {"path": text}
    if at and not Path(text).exists():
        source = {"path": path, "weight": weight}
    return source | ({"image_root": str(root)} if root else {})


def _train(recipe: Recipe, as_json: bool, dry_run: bool) -> int:
    from .rationale import prepare_training, train_rationale

    say = _say(as_json)
    if dry_run:
        recipe.folder.mkdir(parents=True, exist_ok=True)
        counts = prepare_training(recipe, say)
        if as_json:
            print_json(counts)
        return 0
    tuned = train_rationale(recipe, say)
    if as_json:
        print_json(tuned)
    elif not tuned.interrupted:
        model = f"{recipe.model} --model-arg adapter={tuned.model}" if tuned.adapter else f"hf/{tuned.model}"
        loss = "" if tuned.loss is None else f", last loss {tuned.loss:.4f}"
        click.echo(f"{tuned.steps} steps{loss}; measure it: --model {model}")
    if tuned.interrupted:
        click.echo("stopped before the end: the same command goes on", err=True)
        return 130
    return 0


def _say(as_json: bool) -> Callable[[str], None]:
    return partial(click.echo, err=as_json)


@train.command("run")
@click.argument("recipe", type=FILE, metavar="RECIPE.toml")
@flag("--dry-run", help="Prepare and check the data, show one sample and what is learnt of it; train nothing.")
@JSON
def run_recipe(recipe: Path, dry_run: bool, as_json: bool) -> int:
    """Train as a recipe says; the same command continues.

    \b
    snellen train run recipe.toml
    """

    return _train(read_recipe(recipe), as_json, dry_run)


@train.command()
@click.argument("base", metavar="BASE")
@click.argument("tuned", metavar="TUNED")
@repeated("--task", "tasks", required=True, metavar="TASK", help="What both are measured on; repeatable.")
@repeated("--guard", "guards", metavar="TASK", help="Must not get worse: exit code 1 if it does; repeatable.")
@defaulted("--margin", type=FROM_ZERO, default=0.02, help="Drop of a guarded figure that must be excluded.")
@click.option("-o", "--output", type=PATH, required=True, help="Folder of both runs; the same command continues.")
@click.option("--limit", type=COUNT, help="Ask the first N questions of each task.")
@OVERRIDES
@repeated("--model-arg", "model_arguments", metavar="KEY=VALUE", help="How both models are loaded.")
@flag("--allow-overlap", help="Measure although the training data holds items of the tasks; the card says so.")
@SEED
@CATALOGS
@JSON
def evaluate(base: str, tuned: str, output: Path, as_json: bool, **flags: Any) -> int:
    """Measure a model before and after, question by question; refuses tasks that were trained on.

    BASE is provider/name; TUNED too, or the folder of a training.

    \b
    snellen train evaluate hf/FOLDER tuned --task cure -p dataset.path=FILE -o measured
    """
    from .before_after import EvaluateSettings, evaluate_tuned

    for name in ("overrides", "model_arguments"):
        flags[name] = [parse_assignment(text) for text in flags[name]]
    flags["model_arguments"] = dict(flags["model_arguments"])
    done = evaluate_tuned(
        base, tuned, output, convert(flags, EvaluateSettings, "snellen train evaluate"), _say(as_json)
    )
    if as_json:
        print_json(done)
    else:
        print_gains(done)
    return int(bool(done.worse))


def print_gains(done: Evaluated) -> None:
    """Print what was gained, and what a guard says."""
    from rich.table import Table

    from ...report.console import WholeConsole

    table = Table(title="before and after", title_justify="left", title_style="dim")
    for column in ("task", "figure", "before", "after", "difference", "95 %", "n", "guard"):
        table.add_column(column, justify="left" if column in ("task", "figure", "guard") else "right")
    for gain in done.gains:
        sides = ("–" if value is None else f"{100 * value:.1f}" for value in (gain.before, gain.after))
        change = "–" if gain.difference is None else f"{100 * gain.difference:+.1f}"
        interval = "–" if gain.ci95 is None else f"{100 * gain.ci95[0]:+.1f} … {100 * gain.ci95[1]:+.1f}"
        table.add_row(gain.task, gain.figure, *sides, change, interval, str(gain.n), gain.verdict)
    WholeConsole().print(table)
    if done.worse:
        click.echo(f"got worse: {', '.join(done.worse)}", err=True)


@train.command("merge")
@click.argument("folder", type=PATH, metavar="TUNED")
@click.option("-o", "--output", type=PATH, required=True, help="Folder for the whole weights.")
@click.option("--base", help="hf/FOLDER of the base, where it moved.")
def merge_command(folder: Path, output: Path, base: str | None) -> int:
    """Write base and adapter as whole weights, which answer as both together do.

    \b
    snellen train merge tuned -o merged
    """

    click.echo(f"merged: --model hf/{merge_tuned(folder, output, base)}")
    return 0
