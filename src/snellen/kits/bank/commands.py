"""`snellen bank`, `gate`, `audit` and `data diff`: each one call of the library, printed."""

from __future__ import annotations

import os
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ...cli.options import (
    ABOVE_ZERO,
    COUNT,
    FILE,
    FOLDER,
    MACHINE,
    PATH,
    PLAIN,
    QUIET,
    SEED,
    defaulted,
    flag,
    json_flag,
    print_either,
    print_json,
    repeated,
    shared,
)
from ...core.config import convert
from ...core.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from ...core.tasks import RunHeader
    from .gate import GateResult, GateSettings

JSON = json_flag(help="Print the result as JSON on stdout.")
BANK = click.option("--bank", type=FILE, help="A bank of other models' results on the same questions.")
ASKED_ANEW = shared(
    *("model", "base_url", "config_file", "api_key_env", "api_key_file", "max_workers", "max_cost", "deadline_s"),
    *("yes", "no_cache", "output_dir", "plugins", "num_infers", "same_model"),
    *("infer_method", "limit", "protocol", "overrides"),
)
"""Settings that a gate's candidate has of its own; all others are those of the base's command. The last line is for a
base that no command asked (`snellen.run`)."""
NOT_THE_BASES = (
    *("model", "base_url", "config_file", "api_key", "api_key_env", "api_key_file", "output_dir", "max_cost"),
    *("deadline_s", "until_ci", "bank", "budget", "bank_without", "log", "headers", "same_model", "yes", "batch"),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def bank() -> None:
    """Keep many models' results by question, and ask fewer questions.

    \b
    snellen bank build runs/ imported/ table.csv -o mmmu.bank
    snellen bank check mmmu.bank
    snellen run mmmu --model openai/NAME --bank mmmu.bank --until-ci 3
    """


@bank.command()
@click.argument("sources", nargs=-1, required=True, type=PATH, metavar="RUNS|TABLE|BANK...")
@click.option("-o", "--output", required=True, type=PATH, help="The bank to write; an older one may be a source too.")
@click.option("--task", help="Of runs with several tasks: which.")
@click.option("--metric", help="The metric of the cells.  [default: the task's headline]")
@flag("--mixed", help="Take runs of another prompt, protocol or gold too; cells of another gold are left out.")
@flag("--twins", help="Take models that gave the same everywhere.")
@repeated("--without", metavar="NAME", help="A model to leave out. Repeatable.")
@flag("--answers", help="Keep the answers that were read (never replies): `snellen audit` uses them.")
@defaulted("--licence", default="", help="The licence of these results, for the card.")
@defaulted(
    "--arm", default="picture", help="Of runs with --arms: which one the cells are of (`none`: without the picture)."
)
@JSON
def build(sources: tuple[Path, ...], output: Path, as_json: bool, **how: Any) -> None:
    """Make a bank of runs, of 0/1 tables (.csv .tsv .npz) and of older banks."""
    from .build import build as build_bank

    built = build_bank(sources, output, **how)
    found = built.bank
    words = f"{output}: {len(found.models)} models × {len(found.items):,} questions"
    told = {"bank": str(output), "models": len(found.models), "items": len(found.items), "notes": built.notes}
    print_either(told, "\n".join([words, *built.notes]), as_json)


@bank.command()
@click.argument("file", type=FILE, metavar="BANK")
@defaulted("--asked", type=COUNT, default=200, help="Questions asked of a held-out model.")
@defaulted("--trials", type=COUNT, default=1000, help="Drawn prefixes of each kind.")
@SEED
@JSON
def check(file: Path, asked: int, trials: int, seed: int, as_json: bool) -> None:
    """Hold models out: width, coverage, and what a spoiled bank would do."""
    from .bank_file import read_bank
    from .build import check as check_bank

    found = check_bank(read_bank(file), asked=asked, trials=trials, seed=seed)
    print_either(found, "\n".join(found.lines()), as_json)


@bank.command()
@click.argument("full", type=FILE, metavar="BANK")
@click.argument("without", type=FILE, metavar="BANK-OF-AN-ARM")
@click.option(
    "-o", "--output", type=PATH, help="Write the questions that most models do not answer blind, for --subset."
)
@JSON
def picture(full: Path, without: Path, output: Path | None, as_json: bool) -> None:
    """Which questions need their picture, tested over many models.

    \b
    snellen bank build runs/ -o mmmu.bank
    snellen bank build runs/ --arm none -o mmmu-blind.bank
    snellen bank picture mmmu.bank mmmu-blind.bank -o needs-picture.toml
    """
    from .bank_file import read_bank
    from .picture import picture_worth

    found = picture_worth(read_bank(full), read_bank(without), output)
    print_either(found, "\n".join(found.lines()), as_json)


@bank.command()
@click.argument("file", type=FILE, metavar="BANK")
@JSON
def card(file: Path, as_json: bool) -> None:
    """Say whose answers these are, when, by which licences, and what a bank cannot do."""
    from .bank_file import read_bank
    from .build import card_lines

    found = read_bank(file)
    told = {"meta": found.meta, "models": found.models, "items": len(found.items)}
    print_either(told, "\n".join(card_lines(found)), as_json)


@click.command()
@click.argument("base", type=FOLDER)
@click.argument("candidate", type=FOLDER, required=False)
@ASKED_ANEW
@click.option("--margin", type=ABOVE_ZERO, help="How many points worse is still the same.  [default: 1.5]")
@BANK
@click.option("--budget", type=COUNT, help="Ask at most so many questions.")
@click.option("--task", help="Of a base with several tasks: which.")
@click.option("--metric", help="What is compared.  [default: the task's headline]")
@click.option("--policy", type=FILE, help="Several tasks at once: a TOML file with margins, banks and budgets.")
@click.option("--exam", type=FOLDER, help="First a quick eye exam of the candidate, against this exam of the base.")
@defaulted("--format", "form", type=click.Choice(["text", "github", "junit"]), default="text")
@SEED
@PLAIN
@QUIET
@JSON
def gate(base: Path, candidate: Path | None, policy: Path | None, form: str, as_json: bool, **flags: Any) -> int:
    """Is it still the same model? Ask the candidate what the base was asked, until that is settled.

    \b
    snellen gate runs/base runs/fp8 --margin 1.5
    snellen gate runs/base --model openai/NAME-fp8 --base-url URL --margin 1.5 --bank ai2d.bank --budget 1500
    snellen gate runs/base --model openai/NAME-fp8 --base-url URL --policy gate.toml --format github
    Exit 0: same or better. 1: worse. 4: not settled within the budget.
    """
    from .gate import joint_exit_code, render

    if candidate is not None and flags["exam"] is not None:
        raise UsageError("--exam asks the candidate, and a stored run cannot be asked: compare two exams instead")
    if (candidate is None) == (flags["model"] is None and flags["config_file"] is None):
        raise UsageError("name the candidate: a second run folder, or --model provider/name")
    found = [_one_gate(base, candidate, one, flags) for one in _policies(policy, flags, base)]
    if as_json:
        print_json([msgspec.to_builtins(one) | {"exit_code": one.exit_code} for one in found])
    else:
        click.echo(render(found, form))
    return joint_exit_code(found)


def _policies(policy: Path | None, flags: dict[str, Any], base: Path) -> list[GateSettings]:
    """Return one gate, or those of a policy file; a joint error is divided among its tasks."""
    from .gate import GateSettings

    plain = {key: flags[key] for key in ("task", "metric", "bank", "budget", "seed") if flags[key] is not None}
    if policy is None:
        return [GateSettings(margin=flags["margin"] or 1.5, **plain)]
    if flags["margin"] is not None or plain.keys() - {"seed"}:
        raise UsageError("--policy names tasks, margins, banks and budgets: leave these flags out")
    try:
        content = tomllib.loads(policy.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{policy}: {error}") from None
    wanted = convert(content, Policy, str(policy))
    if not wanted.tasks:
        raise ConfigError(f"{policy} names no task: [tasks.NAME] with margin, bank, budget")
    share = wanted.error / len(wanted.tasks)
    return [
        GateSettings(
            task=name,
            metric=rule.metric,
            margin=rule.margin,
            bank=None if rule.bank is None else policy.parent / rule.bank,
            budget=rule.budget,
            must_settle=rule.must_not_fall,
            error=share,
            seed=flags["seed"],
        )
        for name, rule in wanted.tasks.items()
    ]


class Rule(msgspec.Struct, forbid_unknown_fields=True):
    """What a policy says of one task."""

    margin: float = 1.5
    bank: str | None = None
    budget: int | None = None
    metric: str | None = None
    must_not_fall: bool = False
    """Whether `not settled` fails the gate too."""


class Policy(msgspec.Struct, forbid_unknown_fields=True):
    """A policy file: the joint chance of a false verdict, and a rule a task."""

    error: float = 0.05
    tasks: dict[str, Rule] = {}


def _one_gate(base: Path, candidate: Path | None, settings: GateSettings, flags: dict[str, Any]) -> GateResult:
    from ...cli.run_output import TerminalWatcher
    from .gate import gate_asking, gate_stored, look_first

    if candidate is not None:
        return gate_stored(base, candidate, settings)
    run = candidate_settings(base, settings.task, flags)
    watcher = TerminalWatcher(quiet=True, as_lines=flags["as_lines"], prompts=0)
    seen = [] if flags["exam"] is None else look_first(flags["exam"], run)
    found = gate_asking(base, run, settings, None if flags["quiet"] else watcher)
    return msgspec.structs.replace(found, notes=[*seen, *found.notes])


def candidate_settings(base: Path, task: str | None, flags: dict[str, Any]) -> Any:
    """Return the base's own flags with the candidate's model: it is asked as the base was."""
    from ...cli.run import make_settings
    from ...cli.run import run as run_command
    from ...store.reader import RunReader

    with RunReader(base) as reader:
        header = reader.header()
    names = [card.name for card in header.tasks]
    if task is not None and task not in names:
        raise UsageError(f"{base} has no task {task!r}: it has {', '.join(names)}")
    told = _base_flags(header, run_command)
    if len(names) > 1:  # each task has its own order and its own end
        if task is None:
            raise UsageError(f"{base} has the tasks {', '.join(names)}: say which with --task, or --policy")
        told["tasks"] = (next((name for name in told["tasks"] if Path(name).stem == task), task),)
    own = {key: value for key, value in flags.items() if value not in (None, (), False)}
    shown = "".join(letter if letter.isalnum() else "-" for letter in str(own.get("model") or own.get("config_file")))
    place = own.get("output_dir") or Path("runs") / f"gate--{base.name}--{shown}--{task or names[0]}"
    rest = {key: value for key, value in told.items() if key not in NOT_THE_BASES}
    return make_settings("run", {**rest, **own, "bank": None, "budget": None, "output_dir": place})


def _base_flags(header: RunHeader, command: click.Command) -> dict[str, Any]:
    """Return the flags by which the base was asked; of one that no command asked, its tasks by name."""
    words = shlex.split(header.command)
    if "run" not in words[:3]:
        return {"tasks": tuple(str(card.dataset.get("path") or card.name) for card in header.tasks)}
    words = words[words.index("run") + 1 :]
    try:
        return dict(command.make_context("run", words, resilient_parsing=False).params)
    except click.ClickException as error:
        raise UsageError(f"the base's command cannot be read again ({error.format_message()}): gate two runs") from None


class AuditGroup(click.Group):
    """`snellen audit RUNS` ranks; its other words are commands of their own."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Take a first word that is no command for the first source of a ranking."""
        if args and args[0] not in self.commands:
            return "rank", self.commands["rank"], args
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Let options of the ranking stand before its sources."""
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help"):
            args = ["rank", *args]
        return super().parse_args(ctx, args)


@click.group(cls=AuditGroup, context_settings={"help_option_names": ["-h", "--help"]})
def audit() -> None:
    """Rank gold answers by how doubtful they are, let people decide, keep the errata.

    \b
    snellen audit runs/ --bank mmmu.bank -o audits/mmmu
    snellen audit review audits/mmmu --reviewer ana --reviewer ben
    snellen audit errata audits/mmmu --run runs/a -o errata.jsonl
    snellen score runs/a --errata errata.jsonl
    snellen audit compare runs/a runs/b
    snellen run mmmu --errata errata.jsonl --model openai/NAME
    """


@audit.command()
@click.argument("sources", nargs=-1, required=True, type=PATH, metavar="RUNS...")
@BANK
@click.option("-o", "--output", type=PATH, help="Folder for the list, the page and the review.")
@click.option("--task", help="Of runs with several tasks: which.")
@defaulted("--share", type=click.FloatRange(0, 1, min_open=True), default=0.05, help="Share of the rows to list.")
@JSON
def rank(sources: tuple[Path, ...], output: Path | None, as_json: bool, **how: Any) -> None:
    """Rank the gold answers that runs were scored by, worst first."""
    from .audit import audit as audit_runs

    found = audit_runs(sources, how["bank"], output, task=how["task"], share=how["share"])
    if as_json:
        print_json(msgspec.structs.replace(found, doubts=found.doubts[: found.listed]))
        return
    click.echo("\n".join(found.lines()))
    if output is not None:
        click.echo(f"{output / 'audit.html'}; next: snellen audit review {output} --reviewer NAME --reviewer NAME")


@audit.command("review")
@click.argument("folder", type=FOLDER, metavar="DIR")
@repeated("--reviewer", "reviewers", help="Who decides; two people see every row.")
@defaulted("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; 0 picks a free one.")
@JSON
def review_audit(folder: Path, reviewers: tuple[str, ...], port: int, as_json: bool) -> None:
    """Open the review page on localhost, with one link for every reviewer, until Ctrl-C."""
    from .audit import review

    def ready(links: dict[str, str], chosen: int, items: int) -> None:
        text = "\n".join(
            [f"{items} rows; each reviewer opens the own link:", *(f"  {k}: {v}" for k, v in links.items())]
        )
        print_either({"links": links, "port": chosen, "pid": os.getpid()}, text, as_json)

    review(folder, reviewers, port, ready)


@audit.command()
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.option("--run", "source", type=FOLDER, required=True, help="A run with these questions.")
@click.option("-o", "--output", type=PATH, required=True, help="The ledger to add to.")
@JSON
def errata(folder: Path, source: Path, output: Path, as_json: bool) -> None:
    """Write what the reviewers settled to a ledger that `run --errata` takes."""
    from .audit import errata_of

    found = errata_of(folder, output, source)
    print_either(found, found.line(), as_json)


@audit.command()
@click.argument("ledgers", nargs=-1, required=True, type=FILE, metavar="LEDGER...")
@click.option("-o", "--output", type=PATH, required=True, help="The ledger to write.")
def merge(ledgers: tuple[Path, ...], output: Path) -> None:
    """Join ledgers: the same line once, the latest decision of a row counts."""
    from ...data.errata import merge_errata, write_errata

    if output.exists():
        raise UsageError(f"{output} is there already: choose another -o")
    click.echo(f"{output}: {write_errata(output, merge_errata(ledgers))} lines")


@audit.command()
@click.argument("first", type=FOLDER)
@click.argument("second", type=FOLDER)
@click.option("--task", help="Of runs with several tasks: which.")
@JSON
def compare(first: Path, second: Path, task: str | None, as_json: bool) -> None:
    """Compare two runs of different golds by either's, and say how many points the golds moved."""
    from .golds import compare_golds

    found = compare_golds(first, second, task)
    print_either(found, found.line(), as_json)


@click.command()
@click.argument("name")
@click.argument("old", type=click.Path(exists=True, path_type=Path))
@click.argument("new", type=click.Path(exists=True, path_type=Path))
@repeated("--run", "runs", type=FOLDER, help="A stored run: what the new golds do to it. Repeatable.")
@MACHINE
def diff(name: str, old: Path, new: Path, runs: tuple[Path, ...], as_json: bool) -> None:
    """Say what changed between two versions of a benchmark: rows, golds, options, words, pictures.

    NAME is its card, or `-` for files of your own.
    """
    from .data_diff import diff_data

    found = diff_data(name, old, new, runs)
    print_either(found, "\n".join(found.lines()), as_json)
