"""`snellen run`: the main job."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import click
from click import option

from ..api.settings import RunSettings, perturbations
from ..core.config import parse_assignment, set_by_path
from ..core.errors import UsageError
from ..core.protocols import ImagePolicy
from ..core.secret import Secret, hide_passwords
from . import options
from .help_groups import RUN_GROUPS, GroupedCommand
from .model_file import read_model_file
from .options import ABOVE_ZERO, COUNT, FILE, NOT_NEGATIVE, PATH, defaulted, flag, json_flag, repeated
from .prompts import read_prompt_flags

FORMS = ["auto", "choice", "multiple", "yesno", "number", "open", "ocr", "kie", "caption"]
SUBSET_FLAGS = {"core": "core_eval", "debug": "dataset_debug"}
HALF_WIDTH = click.FloatRange(min=0, max=50, min_open=True, max_open=True)
STYLES = "Prompt as one string: one, two, llama_2, otter, llama_adapter2, visualglm, question_answer …, or meta:FILE."
STABILITY = "Accepted; instability is reported whenever there are repeats or variants."
PRICE = "Price of a million input and output tokens.  [default: the model's card, see `snellen models show`]"
MAX_COST = "What this command may spend: then it stops, keeps everything and exits 3; run it again to continue."
DEADLINE = "Seconds for the whole run: then it stops cleanly, keeps everything and exits 3; run it again to continue."
CONSTRAIN = "Let the server answer with nothing but an option's letter, or JSON: another protocol, another run."
BATCH = "Ask in the provider's batches, at half the price, within a day. Ctrl-C leaves them; the same command collects."
BATCH_REST = "What a batch did not answer: in another batch, or live."
EXAMPLE = """
\b
Examples:
  snellen run eyechart --model reader
  snellen run my.jsonl --model openai/NAME --base-url http://localhost:8000/v1
  snellen run my.csv --map question=prompt --model blind/longest --limit 100
"""


@click.command(cls=GroupedCommand, groups=RUN_GROUPS, epilog=EXAMPLE)
@click.argument("tasks", nargs=-1, required=True, metavar="TASK|FILE...")
@option("--model", help="provider/name: openai/NAME, anthropic/NAME, gemini/NAME, reader, blind/longest, replay/FILE …")
@repeated("--base-url", "--url", "--base_url", help="Where the server answers; several are asked as one pool.")
@options.KEYS
@options.API_KEY
@options.ADDRESSING
@option(
    "--config",
    "config_file",
    type=PATH,
    help="Model file (JSON, TOML) or a ready one: qwen3-vl, internvl-3.5, kimi-vl, glm-4.5v …",
)
@option("-o", "--output-dir", type=PATH, help="Run folder; the same command again continues it.")
@option("--limit", type=COUNT, help="Use the first N samples of each task.")
@flag("--try-run", help="Use the first 8 samples of each task.")
@option("--num-infers", type=COUNT, help="Inferences per question.")
@option("--temperature", type=float, help="Sent as given, 0 too; not sent when unset.")
@option("--top-p", type=float)
@option("--max-tokens", type=COUNT)
@option("--reasoning", help="How much a served model may reason: off, low, medium, high, on, or so many tokens.")
@option("--constrain", type=click.Choice(["options", "json"]), help=CONSTRAIN)
@option("--sampling-seed", type=int, help="Seed sent to the server (plus the index of the inference).")
@defaulted("--seed", type=int, default=0, help="Seed of everything Snellen draws itself.")
@option("--stream/--no-stream", default=None, help="Stream replies: gives time to first token.")
@option("--infer-method", help="generation (default), likelihood, or perplexity (a template a label).")
@option("--likelihood-reduction", help="sum (default), mean, per-byte, none or prompt-mean.")
@option("--candidates", help="Likelihood of the option text (default) or of the letters: text, letters.")
@option("--calibration", help="Likelihood less its prior: none (default), unconditional, content-free.")
@option("--option-mark", type=click.Choice(["upper", "lower", "number", "random"]), help="How options are labelled.")
@option("--shuffle-options/--no-shuffle-options", default=None, help="Draw the order of options for each trial.")
@option("--data-root", type=PATH, help="Folder that holds the datasets.  [default: $SNELLEN_DATA or ./data]")
@option("--dataset-duplication", "duplication", type=COUNT, help="Ask every sample N times (variants and repeats).")
@flag("--random-instruct", help="Another wording of the instruction each time.")
@flag("--in-context-sample", help="Show the prompt's fixed example first.")
@option("--shots", metavar="[RETRIEVER:]N", help="Worked examples: 2, random:2, similar:3, bm25:3, fixed:id1,id2.")
@option("--shots-file", type=PATH, help="Draw the examples from this file, not from the rows that are asked.")
@option("--post-prompt", help="What stands after the question and its options, instead of the instruction.")
@option("--response-prefix", help="How the answer is made to begin.")
@flag("--answer-space-instruct", help="Name the possible answers when options are hidden.")
@flag("--yesno-instruct", help="Ask for yes or no where these are the options.")
@flag("--capitalize", help="Begin questions and options with a capital letter.")
@option("--style", help=STYLES)
@option("--prompt-pack", type=FILE, help="File with other wordings.")
@flag("--online-multi-round", help="Dialogues with the model's own answers (--infer-method every).")
@option(
    "--options-in-history/--no-options-in-history", default=None, help="Show options in earlier rounds of a dialogue."
)
@repeated("--variant", "variants", help="A variant to ask, e.g. wording=1 or order=2; may be repeated.")
@option("--perturb", help="Image degradations as variants: jpeg:1-5,blur:1-3.")
@repeated("--map", "columns", metavar="FIELD=COLUMN", help="Which column of your file is which field.")
@option("--form", type=click.Choice(FORMS), help="The form of all records of your file.  [default: each its own]")
@option("--preset", help="How your file is laid out: vlmevalkit, flageval, hub …  [default: recognised by its columns]")
@option("--duplicates", type=click.Choice(["error", "keep", "drop"]), help="A row with an option twice.")
@option("--split", help="Of a folder with several splits: test, validation …")
@option("--data-config", metavar="NAME", help="Of a folder with several configs of a hub's dataset.")
@option("--sheet", help="Of a workbook with several sheets.")
@option("--ids", help="Ask only these samples: a,b,c.")
@option("--ids-file", type=FILE, help="Ask only the samples named in this file, one a line.")
@option("--subset", metavar="NAME", help="A named subset (core, debug, a card of yours), or COLUMN=VALUE.")
@flag("--core-eval", "--core_eval", "core_eval", help="Short for --subset core.")
@flag("--dataset-debug", "--dataset_debug", "dataset_debug", help="Short for --subset debug.")
@option("--sample", "--dataset-subsample", type=COUNT, help="Ask so many drawn samples of each task.")
@option("--sample-seed", type=int, help="Seed of that draw.  [default: 0]")
@option("--stratify", metavar="TAG", help="Draw from every value of a tag its share.")
@options.OVERRIDES
@option(
    "--max-workers", "--num-workers", "--max_workers", type=COUNT, help="Requests in flight at most.  [default: 32]"
)
@defaulted("--max-retries", type=NOT_NEGATIVE, default=5)
@option("--rate", type=ABOVE_ZERO, help="Requests a second at most, evenly spaced; retries count.")
@option("--timeout", "timeout_s", type=ABOVE_ZERO, help="Seconds for one attempt.  [default: 600]")
@option("--deadline", "deadline_s", type=ABOVE_ZERO, help=DEADLINE)
@option("--max-errors", help="Stop after so many failed trials: 20, or 5%.")
@option("--image-max-side", type=click.IntRange(min=16), help="Shrink images whose longer side is larger (px).")
@option("--image-min-side", type=COUNT, help="Give smaller images a white margin up to this side (px).")
@flag("--same-model", help="Continue although another server answers: it serves the same model.")
@options.NO_CACHE
@flag("--use-cache", help="Answer from the cache although the model file says otherwise.  [default without one]")
@flag("--strip-metadata", help="Send pictures without EXIF, texts and bytes after their end.")
@options.ALLOW_OUTSIDE
@flag("--allow-missing-images", help="Count samples without their image as failed instead of refusing.")
@options.PROTOCOL
@option("--profile", help="Read answers as another tool does: reform, vqa-scripts, flageval …")
@option("--convention", help="Cf and Cb of chains: conditional or over-n.  [default: conditional]")
@options.CATALOGS
@repeated("--plugin", "plugins", type=PATH, help="Python file with register(registry).")
@repeated(
    "--model-arg", "model_arguments", metavar="KEY=VALUE", help="Provider-specific: dtype=…, engine.enforce_eager=true"
)
@options.REPLICAS
@option("--price", metavar="IN,OUT[,CACHED]", help=PRICE)
@option("--max-cost", type=ABOVE_ZERO, help=MAX_COST)
@flag("--yes", help="Start although the estimate is above --max-cost; it still stops there.")
@repeated("--log", metavar="TRACKER", help="Tell a tracker, live: jsonl, tensorboard, mlflow or wandb (extras).")
@flag("--prompt-cache", help="Mark pages and instructions to be kept by the provider (Anthropic; others do it alone).")
@flag("--batch", help=BATCH)
@flag("--batch-leave", help="With --batch: send and leave; the same command later collects.")
@defaulted("--batch-rest", type=click.Choice(["again", "live"]), default="again", help=BATCH_REST)
@option(
    "--batch-lines", type=COUNT, help="With --batch: requests in one batch at most.  [default: the provider's limit]"
)
@defaulted("--batch-poll", "batch_poll_s", type=ABOVE_ZERO, default=30.0, help="Seconds between looks, growing to 300.")
@flag("--plain", "as_lines", help="Progress as plain lines, for logs.")
@option("--until-ci", type=HALF_WIDTH, help="Stop when the interval is ± this many points.")
@repeated("--detailed-keys", "--detailed_keys", help="Tags to group by; may be repeated.  [default: all]")
@flag("--half", help="Local models in half precision (the same as --model-arg half=true).")
@option("--batch-size", type=COUNT, help="Local models: requests a batch and device.  [default: as memory allows]")
@flag("--eval-stability", expose_value=False, help=STABILITY)
@option("--show-prompt", "show_prompts", type=COUNT, help="Print the first N prompts whole before asking.")
@options.QUIET
@json_flag(help="Print results.json on stdout; all else goes to stderr.")
def run(quiet: bool, as_json: bool, as_lines: bool, show_prompts: int | None, **flags: Any) -> int:
    """Measure a model on tasks: plan, ask, store, score, report.

    TASK is a name from `snellen tasks`, a task file (.toml), or your own data (.jsonl .json .csv .tsv .parquet
    .arrow .xlsx .tar, a folder of them).
    The same command again continues where it stopped, and costs nothing when it is complete.
    """
    from ..api.run import run_settings
    from .run_output import TerminalWatcher, print_result

    settings = make_settings(**flags)
    watcher = TerminalWatcher(quiet=quiet, as_lines=as_lines, prompts=show_prompts or 0)
    result = run_settings(settings, watcher)
    print_result(result, watcher, as_json=as_json, quiet=quiet)
    if result.interrupted:
        return 3 if result.state.overdue or result.state.over_limit or result.state.in_batches else 130
    return 1 if result.failed else 0


def _wants_cache(flags: dict[str, Any], in_file: bool) -> bool:
    """Tell whether known replies are taken from the cache: as a flag says, else the model file, else yes."""
    never, always = flags.pop("no_cache"), flags.pop("use_cache")
    if never and always:
        raise UsageError("--use-cache and --no-cache say the opposite: give one")
    return always or (in_file and not never)


def make_settings(tasks: tuple[str, ...], **flags: Any) -> RunSettings:
    """Turn the flags into settings; a model file stands between the defaults and the flags."""
    file = read_model_file(flags.pop("config_file"), catalogs=flags["catalogs"])
    key = read_key(flags.pop("api_key"), flags.pop("api_key_env"), flags.pop("api_key_file")) or file.get("key")
    file.pop("key", None)
    headers, query = read_headers(flags.pop("headers")), read_pairs("--query", flags.pop("query"))
    model = _model_name(flags.pop("model"), file.pop("model", None))
    limit, try_run = flags.pop("limit"), flags.pop("try_run")
    flags |= read_addresses(flags.pop("base_url"))
    policy = read_image_flags(flags, file)
    columns = dict(map(parse_assignment, flags.pop("columns")))
    if flags.pop("online_multi_round"):
        flags["infer_method"] = "every_likelihood" if flags["infer_method"] == "likelihood" else "every"
    capitals = [("dataset.capitalise", True)] if flags.pop("capitalize") else []
    ids = read_ids(flags.pop("ids"), flags.pop("ids_file"))
    flags["subset"] = read_subset_flags(flags)
    variants = (*flags.pop("variants"), *perturbations(flags.pop("perturb")))
    wording = file.pop("prompt", {}) | read_prompt_flags(flags)
    arguments = _model_arguments(flags)
    overrides = map(parse_assignment, flags.pop("overrides"))
    cache = _wants_cache(flags, bool(file.pop("cache", True)))
    others = {name: value for name, value in flags.items() if value is not None}
    return RunSettings(
        tasks=tasks,
        model=model,
        api_key=key,
        headers=headers,
        query=query,
        limit=8 if try_run and limit is None else limit,
        columns={field: str(column) for field, column in columns.items()},
        ids=ids,
        variants=tuple(dict.fromkeys(variants)),
        prompt=wording,
        overrides=(*capitals, *overrides),
        model_arguments=arguments,
        cache=cache,
        image_policy=policy,
        command=command_line(sys.argv),
        **(file | others),
    )


def read_addresses(urls: tuple[str, ...]) -> dict[str, Any]:
    """Return the first server and, where there are several, the rest of the pool."""
    return {"base_url": urls[0] if urls else None, "more_urls": urls[1:] or None}


def read_ids(text: str | None, file: Path | None) -> tuple[str, ...]:
    """Return the ids of `--ids a,b` and of a file with one a line, each once."""
    ids = [part.strip() for part in (text or "").split(",")]
    if file is not None:
        try:
            ids += [line.strip() for line in file.read_text("utf-8-sig").splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--ids-file {file} cannot be read as text: {error}") from None
    named = tuple(dict.fromkeys(filter(None, ids)))
    if not named and (text is not None or file is not None):
        raise UsageError(f"{'--ids' if file is None else f'--ids-file {file}'} names no sample")
    return named


def read_image_flags(flags: dict[str, Any], file: dict[str, Any]) -> ImagePolicy | None:
    """Take the limits on the sides of pictures out of flags and model file; None where neither has one."""
    in_file = {name: file.pop(name, None) for name in ("max_side", "min_side")}
    sides = {name: flags.pop(f"image_{name}") or side for name, side in in_file.items()}
    return ImagePolicy(**{name: side for name, side in sides.items() if side}) if any(sides.values()) else None


def read_subset_flags(flags: dict[str, Any]) -> str | None:
    """Take `--core-eval` and `--dataset-debug` out of the flags and return the subset that is meant, if any."""
    named = [flags["subset"], *(name for name in ("core", "debug") if flags.pop(SUBSET_FLAGS[name]))]
    chosen = list(filter(None, named))
    if len(chosen) > 1:
        raise UsageError(f"--subset {' and '.join(chosen)}: choose one")
    return chosen[0] if chosen else None


def _model_name(flag: str | None, from_file: str | None) -> str:
    name = flag or from_file
    if not name:
        raise UsageError("name the model: --model provider/name (see `snellen models`), or --config FILE")
    return name


def _model_arguments(flags: dict[str, Any]) -> dict[str, Any]:
    """Take the flags of local models out of `flags`; `--half` and `--batch-size` are short for --model-arg."""
    arguments: dict[str, Any] = {}
    for key, value in map(parse_assignment, flags.pop("model_arguments")):
        set_by_path(arguments, key, value)  # `engine.enforce_eager=true` is a field of the table `engine`
    return arguments | {name: value for name in ("half", "batch_size") if (value := flags.pop(name))}


def read_headers(given: tuple[str, ...]) -> dict[str, Secret]:
    """Return the headers of `--header NAME=VALUE`; a VALUE `env:NAME` is taken from the environment."""
    headers = {}
    for name, value in read_pairs("--header", given).items():
        variable = value.removeprefix("env:") if value.startswith("env:") else None
        if variable is not None and variable not in os.environ:
            raise UsageError(f"--header {name}=env:{variable}: that variable is not set")
        text = value if variable is None else os.environ[variable]
        if not text.isprintable() or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
            raise UsageError(f"--header {name}: no line ends or control characters in a header")
        headers[name] = Secret(text)
    return headers


def read_pairs(flag_name: str, given: tuple[str, ...]) -> dict[str, str]:
    """Return NAME=VALUE pairs as texts."""
    pairs = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{flag_name} takes NAME=VALUE")
        pairs[name.strip()] = value
    return pairs


HIDDEN = ("--api-key", "--header")


def command_line(arguments: list[str]) -> str:
    """Return the command as typed, without the key and without what headers hold."""
    shown = ["snellen", *arguments[1:]]
    for index, argument in enumerate(shown):
        name, equals, _ = argument.partition("=")
        if argument in HIDDEN and index + 1 < len(shown):
            shown[index + 1] = "****"
        elif equals and name in HIDDEN:
            shown[index] = f"{name}=****"
    return hide_passwords(shlex.join(shown))  # a password in an address is a key too


def read_key(value: str | None, variable: str | None, file: Path | None) -> Secret | None:
    """Return the key from a flag, an environment variable or a file; None for a server that asks for none."""
    if value:
        better = "prefer --api-key-env NAME or --api-key-file FILE"
        click.echo(f"warning: --api-key is visible in process lists; {better}", err=True)
        return Secret(value)
    if variable:
        if not os.environ.get(variable):
            raise UsageError(f"--api-key-env {variable}: that variable is not set")
        return Secret(os.environ[variable])
    if file is None:
        return None
    try:
        key = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--api-key-file {file} cannot be read as text: {error}") from None
    if not key:
        raise UsageError(f"--api-key-file {file} is empty")
    return Secret(key)
